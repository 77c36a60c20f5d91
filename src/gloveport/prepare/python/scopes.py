"""What CPython refuses only when it compiles: `await` outside async functions, a stray `return`, `yield`, `break` …

Compiling hostile code on the host is not safe (see `parser`), so these rules are checked on the tree.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Callable, Iterable

from gloveport.prepare.python.foreign_names import bound_names
from gloveport.prepare.python.parser import FIELDS, children
from gloveport.prepare.python.survey import Function, PythonSurvey, Scope, place_of

FUTURES = frozenset(__future__.all_feature_names)

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def survey(tree: ast.Module, kinds: Iterable[type] = ()) -> PythonSurvey:
    """Return the survey of a tree, with all nodes of these kinds except those in annotations of functions."""
    result = PythonSurvey(nodes={kind: [] for kind in kinds})
    groups, kept, names = result.groups, result.nodes, result.names
    result.enter(tree.body, Scope("module", None, awaits=True))
    while groups:
        nodes, scope = groups.pop()
        while nodes:
            node = nodes.pop()
            kind = type(node)
            if kind in kept:
                kept[kind].append(node)
            if isinstance(node, ast.Name):
                names.add(node.id)
                continue
            take = _TAKE.get(kind)
            if take is not None:
                nodes += take(result, node, scope)
                continue
            for name in FIELDS[kind]:
                value = getattr(node, name, None)
                if type(value) is list:
                    nodes += value
                elif value is not None:
                    nodes.append(value)
    if result.futures:
        _check_futures(result, tree)
    if result.declared:
        _check_declarations(result, tree)
    return result


Rest = list[ast.AST]
"""The nodes below a node that stand in the same scope as the node itself."""


def _take_function(found: PythonSurvey, node: Function, scope: Scope) -> Rest:
    arguments = node.args
    _check_parameters(found, arguments)
    kind = "lambda" if isinstance(node, ast.Lambda) else "async" if isinstance(node, ast.AsyncFunctionDef) else "def"
    inner = Scope(kind, node, kind == "async", scope, optional=scope.optional)
    found.enter([node.body] if isinstance(node, ast.Lambda) else node.body, inner)
    rest: Rest = [*arguments.defaults, *(value for value in arguments.kw_defaults if value)]
    if not isinstance(node, ast.Lambda):
        rest += node.decorator_list
    return rest


def _check_parameters(found: PythonSurvey, arguments: ast.arguments) -> None:
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra]
    names: set[str] = set()
    for parameter in parameters:
        if parameter.arg in names:
            found.fail(parameter, f"the parameter `{parameter.arg}` is declared twice", "give each parameter its own name")
        names.add(parameter.arg)


def _take_class(found: PythonSurvey, node: ast.ClassDef, scope: Scope) -> Rest:
    found.enter(node.body, Scope("class", node, False, scope, optional=scope.optional))
    return [*node.decorator_list, *node.bases, *node.keywords]


def _take_comprehension(found: PythonSurvey, node: Comprehension, scope: Scope) -> Rest:
    lazy = isinstance(node, ast.GeneratorExp)
    inner = Scope("comprehension", scope.node, lazy or scope.awaits, scope)
    first = node.generators[0]
    nodes: Rest = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    if ast.comprehension in found.nodes:
        found.nodes[ast.comprehension] += node.generators
    for generator in node.generators:
        nodes += [generator.target, *generator.ifs]
        if generator is not first:
            nodes.append(generator.iter)
        if generator.is_async and not inner.awaits:
            _refuse_await(found, generator.target, "async for", scope)
    found.enter(nodes, inner)
    return [first.iter]


def _take_await(found: PythonSurvey, node: ast.Await, scope: Scope) -> Rest:
    if not scope.awaits:
        _refuse_await(found, node, "await", scope)
    return [node.value]


def _refuse_await(found: PythonSurvey, node: ast.AST, keyword: str, scope: Scope) -> None:
    where = {"class": "the body of a class", "lambda": "a lambda"}.get(scope.kind, "a function that is not async")
    if scope.kind == "comprehension" and not isinstance(scope.node, ast.FunctionDef):
        where = "the body of a class" if isinstance(scope.node, ast.ClassDef) else "a lambda"
    line = getattr(scope.node, "lineno", 1)
    hint = f"write `async def` for the function that starts on line {line}, and `await` it where it is called"
    if where == "a lambda":
        hint = "write an `async def` instead, and collect several results with `await asyncio.gather(*…)`"
    elif where == "the body of a class":
        hint = "await before the class, or inside an `async def` method"
    found.fail(node, f"`{keyword}` in {where}", hint)


def _take_async_for(found: PythonSurvey, node: ast.AsyncFor, scope: Scope) -> Rest:
    if not scope.awaits:
        _refuse_await(found, node, "async for", scope)
    return _take_for(found, node, scope)


def _take_for(found: PythonSurvey, node: ast.For | ast.AsyncFor, scope: Scope) -> Rest:
    found.enter(node.body, scope._replace(loop=True))
    return [node.target, node.iter, *node.orelse]


def _take_while(found: PythonSurvey, node: ast.While, scope: Scope) -> Rest:
    found.enter(node.body, scope._replace(loop=True))
    return [node.test, *node.orelse]


def _take_with(found: PythonSurvey, node: ast.With | ast.AsyncWith, scope: Scope) -> Rest:
    if isinstance(node, ast.AsyncWith) and not scope.awaits:
        _refuse_await(found, node, "async with", scope)
    optional = any(suppressed(item.context_expr, IMPORT_ERRORS) for item in node.items)
    found.enter(node.body, scope._replace(optional=True) if optional else scope)
    return [*node.items]


def _take_yield(found: PythonSurvey, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Rest:
    word = "yield" if isinstance(node, ast.Yield) else "yield from"
    if scope.kind in {"module", "class"}:
        hint = "return one value, or send each value to the user with `emit(value)`"
        found.fail(node, f"`{word}` outside a function", hint)
    elif scope.kind == "comprehension":
        found.fail(node, f"`{word}` inside a comprehension", "write a `for` loop that yields")
    elif scope.kind == "async" and isinstance(node, ast.YieldFrom):
        found.fail(node, "`yield from` in an async function", "write `async for item in …: yield item`")
    return [node.value] if node.value else []


def _take_return(found: PythonSurvey, node: ast.Return, scope: Scope) -> Rest:
    if scope.kind == "class":
        found.fail(node, "`return` in the body of a class", "if it belongs to a method, indent it below the `def`")
    return [node.value] if node.value else []


def _take_break(found: PythonSurvey, node: ast.Break | ast.Continue, scope: Scope) -> Rest:
    if not scope.loop:
        word = type(node).__name__.lower()
        hint = "end the program with `return`" if scope.kind == "module" else "use `return` to leave a function"
        found.fail(node, f"`{word}` outside a loop", hint)
    return []


def _take_declaration(found: PythonSurvey, node: ast.Global | ast.Nonlocal, scope: Scope) -> Rest:
    if scope.kind == "module" and isinstance(node, ast.Nonlocal):
        hint = "`nonlocal` only works in a function inside another function; delete it"
        found.fail(node, "`nonlocal` at the top level", hint)
    else:
        found.declared.append((node, scope))
    return []


def _take_call(found: PythonSurvey, node: ast.Call, scope: Scope) -> Rest:
    if len(node.keywords) > 1:
        names: set[str] = set()
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg in names:
                found.fail(keyword, f"the keyword argument `{keyword.arg}` is given twice", "keep one of them")
            names.add(keyword.arg or "")
    return [node.func, *node.args, *(keyword.value for keyword in node.keywords)]


def _take_try(found: PythonSurvey, node: ast.Try | ast.TryStar, scope: Scope) -> Rest:
    for handler in node.handlers[:-1]:
        if handler.type is None:
            found.fail(handler, "a bare `except:` must be the last clause", "move it below the other `except` clauses")
    caught = any(catches(handler.type, IMPORT_ERRORS) for handler in node.handlers)
    found.enter(node.body, scope._replace(optional=True) if caught else scope)
    return [*node.handlers, *node.orelse, *node.finalbody]


def _take_if(found: PythonSurvey, node: ast.If, scope: Scope) -> Rest:
    if getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING":
        found.enter(node.body, scope._replace(optional=True))
        return [*node.orelse]
    return [node.test, *node.body, *node.orelse]


def _take_import(found: PythonSurvey, node: ast.Import, scope: Scope) -> Rest:
    (found.optional_imports if scope.optional else found.imports).append(node)
    return []


def _take_import_from(found: PythonSurvey, node: ast.ImportFrom, scope: Scope) -> Rest:
    if node.module == "__future__" and not node.level:
        found.futures.append(node)
    elif node.names[0].name == "*" and scope.kind != "module":
        hint = f"name what you need: `from {node.module or '.'} import …`, or import it at the top level"
        found.fail(node, "`import *` inside a function or a class", hint)
    else:
        (found.optional_imports if scope.optional else found.imports).append(node)
    return []


def _check_futures(found: PythonSurvey, tree: ast.Module) -> None:
    allowed: set[ast.AST] = set()
    for index, statement in enumerate(tree.body):
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and not index
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            allowed.add(statement)
        elif not docstring:
            break
    for node in found.futures:
        if node not in allowed:
            found.fail(node, "`from __future__` after other code", "move it to the beginning of the program, or delete it")
        for alias in node.names:
            if alias.name not in FUTURES:
                found.fail(alias, f"there is no `__future__` feature `{alias.name[:60]}`", "delete this import")


# --- `global` and `nonlocal` that come too late, or name nothing

Uses = dict[str, tuple[tuple[int, int], bool]]
"""The names that a function or the top level uses itself: where first, and whether it binds them anywhere."""


def _check_declarations(found: PythonSurvey, tree: ast.Module) -> None:
    """Note each `global` and `nonlocal` that comes too late or names nothing."""
    known: dict[ast.AST, Uses] = {}
    for node, scope in found.declared:
        word = type(node).__name__.lower()
        uses = _uses(scope.node or tree, known)
        for name in node.names:
            if name in uses and uses[name][0] < place_of(node):
                found.fail(node, f"`{word} {name}` after the name was used", f"write it before the first use of `{name}`")
            elif word == "nonlocal" and not name.startswith("__") and not _is_in_function(name, scope, known):
                hint = f"write `global {name}` for a top-level name"
                found.fail(node, f"`nonlocal {name}`: no enclosing function binds that name", hint)


def _is_in_function(name: str, scope: Scope, known: dict[ast.AST, Uses]) -> bool:
    outer = scope.outer
    while outer is not None:
        if isinstance(outer.node, Function) and _uses(outer.node, known).get(name, (None, False))[1]:
            return True
        outer = outer.outer
    return False


def _uses(owner: ast.AST, known: dict[ast.AST, Uses]) -> Uses:
    if owner in known:
        return known[owner]
    uses = known[owner] = {}
    body = getattr(owner, "body", [])
    pending: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    if isinstance(owner, Function):
        pending.append(owner.args)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            _note(uses, node.id, node, binds=not isinstance(node.ctx, ast.Load))
        elif not isinstance(node, ast.Global | ast.Nonlocal):
            for name in bound_names(node):
                _note(uses, name, node, binds=True)
        if not isinstance(node, Function | ast.ClassDef):
            pending += children(node)
    return uses


def _note(uses: Uses, name: str, node: ast.AST, *, binds: bool) -> None:
    place = place_of(node)
    first, bound = uses.get(name, (place, False))
    uses[name] = (min(first, place), bound or binds)


# --- which statements handle which errors

IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def catches(caught: ast.expr | None, names: frozenset[str] | None = None) -> bool:
    """Return whether an `except` clause catches one of these errors; without names, whether it catches any."""
    if caught is None or names is None:
        return True
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(getattr(kind, "id", getattr(kind, "attr", "")) in names for kind in kinds)


def suppressed(context: ast.expr, names: frozenset[str] | None = None) -> bool:
    """Return whether a context manager is `contextlib.suppress(…)` of one of these errors."""
    if not isinstance(context, ast.Call) or getattr(context.func, "id", getattr(context.func, "attr", "")) != "suppress":
        return False
    return any(catches(argument, names) for argument in context.args)


_TAKE: dict[type, Callable[[PythonSurvey, ast.AST, Scope], Rest]] = {
    ast.FunctionDef: _take_function,
    ast.AsyncFunctionDef: _take_function,
    ast.Lambda: _take_function,
    ast.ClassDef: _take_class,
    ast.ListComp: _take_comprehension,
    ast.SetComp: _take_comprehension,
    ast.DictComp: _take_comprehension,
    ast.GeneratorExp: _take_comprehension,
    ast.Await: _take_await,
    ast.AsyncFor: _take_async_for,
    ast.For: _take_for,
    ast.While: _take_while,
    ast.With: _take_with,
    ast.AsyncWith: _take_with,
    ast.Yield: _take_yield,
    ast.YieldFrom: _take_yield,
    ast.Return: _take_return,
    ast.Break: _take_break,
    ast.Continue: _take_break,
    ast.Global: _take_declaration,
    ast.Nonlocal: _take_declaration,
    ast.Call: _take_call,
    ast.Try: _take_try,
    ast.TryStar: _take_try,
    ast.If: _take_if,
    ast.Import: _take_import,
    ast.ImportFrom: _take_import_from,
}  # type: ignore[assignment]
