// A menu that closes when something in it was chosen, and when somebody looks elsewhere.
import { useEffect, useRef, type ReactNode } from "react";

export function Menu({ children }: { children: ReactNode }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const isElsewhere = event instanceof KeyboardEvent ? event.key === "Escape" : !menu.current?.contains(event.target as Node);
      if (isElsewhere && menu.current) menu.current.open = false;
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close);
    };
  }, []);
  const chosen = () => {
    if (menu.current) menu.current.open = false;
  };
  return (
    <details className="menu" ref={menu}>
      <summary className="button">More</summary>
      <div className="menu-items" onClick={chosen}>{children}</div>
    </details>
  );
}
