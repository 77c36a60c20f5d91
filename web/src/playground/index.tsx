// The playground: a program in an editor that knows its tools, and beside it the run that came of it.
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { asApiError, get, post, type ApiError } from "../api";
import { useLoaded } from "../shell/loaded";
import { navigate, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { runsPrograms, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import type { RunDetails } from "../types";
import type { Finding } from "./checks";
import type { EditorHandle } from "./editor";
import type { Marks } from "./editor-extensions";
import { CheckSummary, Findings, type Checked } from "./findings";
import { Input } from "./input";
import { inputOf, problemOfInput, starter, useProgram, type Example, type Program } from "./programs";
import { RunPane } from "./run-pane";
import { Toolbar } from "./toolbar";
import "../run/run.css";
import "../runs/runs.css";
import "./playground.css";

const Editor = lazy(() => import("./editor"));
const NO_MARKS: Marks = { chosen: new Set(), failed: null };

export default function Playground() {
  const me = useMe();
  if (runsPrograms(me)) return <Bench />;
  return <Screen title="Playground"><Empty title="Agents and admins run programs">{`The role ${me.role} can't.`}</Empty></Screen>;
}

/** Finds the program that the address names: that of a run, an example, or an empty one in a language. */
function Bench() {
  const [query] = useQuery();
  const examples = useLoaded("examples", async (signal) => (await get<{ examples: Example[] }>("/v1/examples", { signal })).examples);
  const [run, example, language] = [query.get("run") ?? "", query.get("example") ?? "", query.get("new") ?? ""];
  const first = examples.data?.[0]?.name;
  const isNowhere = !run && !example && !language;
  useEffect(() => {
    if (isNowhere && examples.data) navigate(first ? `/playground?example=${encodeURIComponent(first)}` : "/playground?new=typescript", { replace: true });
  }, [isNowhere, first, examples.data]);
  const [details, setDetails] = useState<RunDetails | null>(null);
  const found = details?.run.run === run ? details : null;
  const came = useMemo(() => {
    if (run) return found && programOf(found);
    const named = examples.data?.find((one) => one.name === example);
    if (named) return { code: named.code, language: named.language, input: "", agent: "" };
    return language ? starter(language) : null;
  }, [run, example, language, examples.data, found?.code, found?.input]);
  const origin = run ? `run=${run}` : example ? `example=${example}` : `new=${language}`;
  const isGone = !run && example !== "" && examples.data !== null && !came;
  return (
    <Screen title="Playground" wide>
      {examples.error && <Problem error={examples.error} retry={examples.reload} />}
      {isGone ? (
        <Empty title="There is no such example">It may need tools that are not here.</Empty>
      ) : (
        <Workbench origin={origin} run={run} came={came} details={found} examples={examples.data ?? []} onDetails={setDetails} />
      )}
    </Screen>
  );
}

function programOf({ code, run, input }: RunDetails): Program {
  return { code, language: run.language, input: input === undefined ? "" : JSON.stringify(input, null, 2), agent: run.agent === "default" ? "" : run.agent };
}

interface WorkbenchProps {
  origin: string;
  run: string;
  came: Program | null;
  details: RunDetails | null;
  examples: Example[];
  onDetails: (details: RunDetails) => void;
}

function Workbench({ origin, run, came, details, examples, onDetails }: WorkbenchProps) {
  const { program, isEdited, edit, reset, take } = useProgram(origin, came);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [marks, setMarks] = useState(NO_MARKS);
  const editor = useRef<EditorHandle>(null);
  const goTo = useCallback((place: { line: number; column?: number }) => editor.current?.goTo({ column: 1, ...place }), []);
  const onFindings = useCallback((findings: Finding[], error: ApiError | null) => setChecked({ findings, error }), []);
  const { start, isStarting, refusal } = useStart(program, take);
  useEffect(() => setMarks(NO_MARKS), [run]);
  useRunKeys(start);
  const isAsRun = details !== null && program?.code === details.code;
  return (
    <div className="bench">
      <section className="card bench-program" aria-label="Program">
        <Toolbar origin={origin} program={program} examples={examples} isEdited={isEdited} onEdit={edit} onReset={reset} />
        <div className="bench-editor">
          {program && (
            <Suspense fallback={<Loading />}>
              <Editor
                code={program.code}
                language={program.language}
                agent={program.agent}
                chosen={isAsRun ? marks.chosen : NO_MARKS.chosen}
                failed={isAsRun ? marks.failed : null}
                onChange={(code) => edit({ code })}
                onFindings={onFindings}
                onRun={start}
                handle={editor}
              />
            </Suspense>
          )}
        </div>
        <Findings checked={checked} onFinding={goTo} />
        {program && <Input key={origin} text={program.input} onChange={(input) => edit({ input })} />}
        <footer className="bench-foot">
          <span className="small" role="status"><CheckSummary checked={checked} /></span>
          <span className="small quiet keys-hint" id="editor-keys"><kbd>Esc</kbd><kbd>Tab</kbd> leaves the editor</span>
          <span className="spread" />
          <button disabled={!program || isStarting} title="Run it with its writes held back, and show them" onClick={() => start("plan")}>Plan</button>
          <button className="primary" disabled={!program || isStarting} onClick={() => start("run")}>Run <kbd>Ctrl</kbd><kbd>⏎</kbd></button>
        </footer>
      </section>
      <div className="run-right" aria-label="Run" role="region">
        {refusal && <Problem error={refusal} />}
        {run ? <RunPane key={run} id={run} onDetails={onDetails} onMarks={setMarks} onLine={(line) => goTo({ line })} /> : !refusal && <NothingRun />}
      </div>
    </div>
  );
}

function NothingRun() {
  return (
    <Empty title="Nothing has run yet">
      <p><strong>Run</strong> starts the program in a sandbox. Its calls, its output and its result appear here.</p>
      <p><strong>Plan</strong> holds its writes back, and lists them.</p>
    </Empty>
  );
}

/** Starts the program, and goes to the address of its run. */
function useStart(program: Program | null, take: (origin: string, program: Program) => void) {
  const [isStarting, setStarting] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const start = async (mode: "run" | "plan") => {
    if (!program || isStarting || problemOfInput(program.input)) return;
    const input = inputOf(program.input);
    const body = { code: program.code, language: program.language, mode, wait: false };
    setStarting(true);
    setRefusal(null);
    try {
      const { run } = await post<{ run: string }>("/v1/runs", { ...body, ...(input === undefined ? {} : { input }), ...(program.agent ? { agent: program.agent } : {}) });
      take(`run=${run}`, program);
      navigate(`/playground?run=${run}`);
      document.querySelector(".bench > .run-right")?.scrollIntoView({ block: "nearest" });
    } catch (error) {
      setRefusal(asApiError(error));
    } finally {
      setStarting(false);
    }
  };
  return { start: (mode: "run" | "plan") => void start(mode), isStarting, refusal };
}

/** Ctrl-Enter runs from anywhere on the page; the editor has the same keys. */
function useRunKeys(start: (mode: "run" | "plan") => void) {
  const latest = useRef(start);
  latest.current = start;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
      if (event.target instanceof Element && event.target.closest("dialog")) return;
      event.preventDefault();
      latest.current(event.shiftKey ? "plan" : "run");
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
