import { createRoot } from "react-dom/client";
import { App } from "./shell/app";
import { applyTheme } from "./shell/theme";
import "./shell/tokens.css";
import "./shell/base.css";

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
