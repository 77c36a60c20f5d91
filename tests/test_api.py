"""The public names, and the promises that hold the tree together."""

import ast
from functools import cache
from pathlib import Path

import gloveport

ROOT = Path(gloveport.__file__).parent


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return every module by its path below src/gloveport. Guest code is left out: the jail confines it."""
    paths = (path for path in sorted(ROOT.rglob("*.py")) if "guest" not in path.relative_to(ROOT).parts)
    return tuple((path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())) for path in paths)


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_the_public_names_are_these() -> None:
    assert gloveport.__all__ == [
        "Answer", "ApprovalRequest", "Budget", "CallRecord", "Divergence", "EgressRule", "ErrorValue", "Event", "ExecuteResult", "Executor", "Failure", "Gloveport", "GloveportError", "GloveportExecutor", "Limits", "LogLine", "OptionError",
        "Outcome", "Rule", "Rules", "SandboxError", "SourceConfig", "SourceError", "ToolError", "Usage", "code_tool", "tool",
    ]  # fmt: skip
    assert gloveport.__all__ == sorted(gloveport.__all__)
    for name in gloveport.__all__:
        assert getattr(gloveport, name).__doc__


def called(tree: ast.Module) -> set[str]:
    """What is called by a dotted name: `os.fork`, and `fork` for short."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            dotted = ast.unparse(node.func)
            names |= {dotted, dotted.rpartition(".")[2]}
    return names


def test_processes_are_started_only_for_the_jail_mcp_servers_the_pager_editors_notices_and_credentials() -> None:
    spawning = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "open_process"}
    spawning |= {"run_process", "Popen", "posix_spawn", "posix_spawnp", "os.system", "os.popen", "stdio_client"}
    starters = set()
    for name, tree in modules():
        if imported(tree) & {"subprocess", "os.fork", "multiprocessing", "pty"} or called(tree) & spawning:
            starters.add(name)
    assert starters == {
        *(
            "sandbox/server_process.py",
            "sources/mcp/stdio.py",
            "host/approval_notices.py",
            "policy/credentials/providers.py",
        ),
        *("surfaces/cli/pager.py", "surfaces/cli/run/editor.py"),
    }


def test_no_shell_is_ever_started() -> None:
    for name, tree in modules():
        assert not called(tree) & {"create_subprocess_shell", "subprocess_shell", "os.system", "os.popen"}, name
        shells = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "shell"]
        assert not shells, name


def test_nothing_deserialises_anything_but_data() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
    reads_events = {
        "sources/openapi/compile/document/yaml.py"
    }  # it uses YAML's parser, and none of what makes objects of a text
    for name, tree in modules():
        assert not imported(tree) & forbidden - ({"yaml"} if name in reads_events else set()), name
        used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not {use for use in used if use.startswith("yaml.") and "load" in use}, name
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert not calls & {"eval", "exec", "compile"}, name


def test_the_fork_server_needs_nothing_but_the_standard_library() -> None:
    known = {"gloveport", "__future__"}
    todo, seen = ["sandbox/jail/fork_server.py"], set()
    trees = dict(modules())
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for module in imported(trees[name]):
            path = "/".join(module.split(".")[1:]) + ".py"
            if module.startswith("gloveport.") and path in trees:
                todo.append(path)
            else:
                top = module.split(".")[0]
                assert top in known or top in __import__("sys").stdlib_module_names, (name, module)


def test_no_module_or_function_outgrows_the_house() -> None:
    for name, tree in modules():
        assert len((ROOT / name).read_text().splitlines()) <= 500, name
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{name}: {node.name}"
