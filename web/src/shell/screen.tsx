import { useEffect, type ReactNode } from "react";
import { usePendingCount } from "./pending";

interface Props {
  title: string;
  /** What stands in the title of the window, if not the title. */
  windowTitle?: string;
  actions?: ReactNode;
  children: ReactNode;
  /** Use the whole width of the window. */
  wide?: boolean;
}

/** The frame of a page: its heading, its actions, and the title of the window with the count of what waits for somebody. */
export function Screen({ title, windowTitle = title, actions, children, wide }: Props) {
  const pending = usePendingCount();
  useEffect(() => {
    document.title = `${pending ? `(${pending}) ` : ""}${windowTitle} · Gloveport`;
  }, [pending, windowTitle]);
  return (
    <main className={wide ? "screen wide" : "screen"} id="content" tabIndex={-1}>
      <header className="screen-head">
        <h1>{title}</h1>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}
