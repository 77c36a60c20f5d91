// What stands round every page: the navigation, the state of the sandbox, and the keys.
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { Me } from "../types";
import { Dialog } from "./dialog";
import { PLACES, useGlobalKeys } from "./keys";
import { usePendingCount } from "./pending";
import { Link, usePath } from "./router";
import { isAdmin, isApprover, signOut } from "./session";
import { chooseTheme, useTheme } from "./theme";
import { sayFailed, Toasts } from "./toasts";

interface Place {
  href: string;
  name: string;
  allows: (me: Me) => boolean;
}

const everybody = () => true;
const NAVIGATION: Place[] = [
  { href: "/runs", name: "Runs", allows: everybody },
  { href: "/approvals", name: "Approvals", allows: isApprover },
  { href: "/tools", name: "Tools", allows: everybody },
  { href: "/sources", name: "Sources", allows: everybody },
  { href: "/playground", name: "Playground", allows: (me) => me.role !== "approver" },
  { href: "/policies", name: "Policies", allows: isApprover },
  { href: "/agents", name: "Agents", allows: isAdmin },
  { href: "/audit", name: "Audit", allows: isApprover },
];

export function Layout({ me, children }: { me: Me; children: ReactNode }) {
  const [helps, setHelps] = useState(false);
  useGlobalKeys(() => setHelps(true));
  return (
    <>
      <a className="skip" href="#content">Skip to the content</a>
      <Navigation me={me} />
      {children}
      <Footer me={me} showKeys={() => setHelps(true)} />
      <Toasts />
      {helps && <Keys onClose={() => setHelps(false)} />}
    </>
  );
}

function Navigation({ me }: { me: Me }) {
  const path = usePath();
  const pending = usePendingCount();
  const places = useRef<HTMLDivElement>(null);
  const first = path.split("/")[1];
  useEffect(() => {
    // On a narrow screen, the places scroll. Not `scrollIntoView`: it would move the page, too.
    const shown = places.current?.querySelector<HTMLElement>("[aria-current]");
    if (shown && places.current) places.current.scrollLeft = shown.offsetLeft - (places.current.clientWidth - shown.offsetWidth) / 2;
  }, [first]);
  return (
    <nav className="top" aria-label="Pages">
      <Link className="brand" href="/runs"><Mark /> Gloveport</Link>
      <div className="places" ref={places}>
        {NAVIGATION.filter((place) => place.allows(me)).map(({ href, name }) => (
          <Link key={href} href={href} aria-current={path === href || path.startsWith(`${href}/`) || (path === "/" && href === "/runs") ? "page" : undefined}>
            {name}
            {href === "/approvals" && pending > 0 && <span className="count" aria-label={`${pending} waiting`}>{pending}</span>}
          </Link>
        ))}
      </div>
      <ThemeButton />
    </nav>
  );
}

/** The port: a ring with a gate. */
function Mark() {
  return (
    <svg className="mark-logo" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M8 25V14a8 8 0 0 1 16 0v11" />
      <circle cx="16" cy="15.5" r="3" />
    </svg>
  );
}

function ThemeButton() {
  const theme = useTheme();
  const next = { system: "light", light: "dark", dark: "system" } as const;
  const sign = { system: "◑", light: "☀︎", dark: "☾" }[theme];
  return (
    <button className="plain theme" title={`Theme: ${theme}`} aria-label={`Theme: ${theme}. Change to ${next[theme]}`} onClick={() => chooseTheme(next[theme])}>
      {sign}
    </button>
  );
}

function Footer({ me, showKeys }: { me: Me; showKeys: () => void }) {
  const { strength, meaning, problem } = me.sandbox;
  const isWeak = problem !== null || strength === "none";
  return (
    <footer className="bottom">
      <span>Gloveport {me.version}</span>
      <span className={isWeak ? "danger" : ""} title={meaning}>{problem ?? `sandbox: ${strength}`}</span>
      <span className="spread" />
      <span>{me.name} ({me.role})</span>
      <button className="plain" onClick={showKeys}>Keys <kbd>?</kbd></button>
      <button className="plain" onClick={() => void signOut().catch(sayFailed)}>Sign out</button>
    </footer>
  );
}

const NAMES: Record<string, string> = Object.fromEntries(NAVIGATION.map(({ href, name }) => [href, name]));

function Keys({ onClose }: { onClose: () => void }) {
  const keys = [
    ["/", "search"],
    ...Object.entries(PLACES).map(([key, place]) => [`g ${key}`, NAMES[place] ?? place]),
    ["j k", "next and previous"],
    ["y n e", "approve, deny and edit"],
    ["?", "these keys"],
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="keys">
        {keys.map(([key, what]) => (
          <div key={key}><dt>{key?.split(" ").map((each) => <kbd key={each}>{each}</kbd>)}</dt><dd>{what}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}
