import { useState } from "react";
import { ApiError } from "../api";
import { say, sayFailed } from "./toasts";

interface Props {
  text: string | (() => string);
  label?: string;
  /** What to say when it is done, where the button goes away. */
  says?: string;
}

/** A button that puts text on the clipboard. */
export function Copy({ text, label = "Copy", says }: Props) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      if (says) say(says);
      setDone(true);
      setTimeout(() => setDone(false), 1_500);
    } catch {
      sayFailed(new ApiError("not-allowed", "the browser does not allow these pages to use the clipboard"));
    }
  };
  return <button onClick={() => void copy()}>{done ? "Copied" : label}</button>;
}
