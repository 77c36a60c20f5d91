// A dialog of the browser: it keeps the focus, Escape closes it, and what lies behind is inert.
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { sayFailed } from "./toasts";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  actions?: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, actions, wide }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} className={wide ? "wide" : ""} aria-labelledby={heading} onClose={onClose}>
      <h2 id={heading}>{title}</h2>
      <div className="dialog-body">{children}</div>
      <div className="actions">
        <button onClick={onClose}>Close</button>
        {actions}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  verb: string;
  destructive?: boolean;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  children: ReactNode;
}

/** Ask before something is done that can't be taken back. */
export function Confirm({ title, verb, destructive = false, onConfirm, onClose, children }: ConfirmProps) {
  const [busy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      sayFailed(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={<button className={destructive ? "destructive" : "primary"} disabled={busy} onClick={() => void confirm()}>{verb}</button>}
    >
      {children}
    </Dialog>
  );
}
