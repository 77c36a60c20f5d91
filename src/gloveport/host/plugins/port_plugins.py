"""Calls the hooks of the plugins of one port.

Each hook is called by itself: one that fails is named, with its traceback in the log and without it in the warnings of the
run, and the others go on. No value of a plugin crosses into a run as it is: functions become tools behind the bridge, and
`on_call` gets a copy of the arguments, which it may only deny.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gloveport.bridge.run_context import CheckCall
from gloveport.errors import GloveportError, OptionError, ToolError
from gloveport.host.plugins.extensions import BUILT_IN
from gloveport.host.plugins.loading import FoundPlugin, PluginArgument, load_plugins, new_manager
from gloveport.host.program_reader import SUBSETS
from gloveport.host.runs.held_runs import HeldRun
from gloveport.host.runs.run_request import NO_INPUT, RunRequest
from gloveport.large_values import is_large, off_loop_if
from gloveport.plugins.hooks import Additions, AllowedCall, StartingRun
from gloveport.sandbox.engines.registry import add_engine
from gloveport.sources.functions import FunctionSource, functions
from gloveport.sources.kinds import SourceKind
from gloveport.types import Event, LogLine, Outcome, Tool

if TYPE_CHECKING:
    import click

    from gloveport.config import SourceConfig
    from gloveport.policy.credentials.providers import CredentialProvider
    from gloveport.policy.egress import Reply
    from gloveport.sources import Source
    from gloveport.sources.context import SourceContext

logger = logging.getLogger("gloveport")

HOOK_SECONDS = 10.0  # an async hook that takes longer has failed
MAX_KEPT_SOURCES = 32  # of functions that plugins have added to runs

Run = Callable[[RunRequest, HeldRun | None], Coroutine[Any, Any, Outcome]]


@dataclass(frozen=True, slots=True)
class _Hook:
    plugin: str
    name: str
    function: Callable[..., Any]
    takes: tuple[str, ...]

    async def call(self, **given: Any) -> Any:
        """Return what the hook returns. Raise whatever it raises, and TimeoutError for an async one that takes too long."""
        found = self.call_now(**given)
        if not inspect.isawaitable(found):
            return found
        async with asyncio.timeout(HOOK_SECONDS):
            return await found

    def call_now(self, **given: Any) -> Any:
        try:
            return self.function(**{name: given[name] for name in self.takes})
        except SystemExit as error:
            raise RuntimeError(f"the plugin {self.plugin} called sys.exit") from error

    def failed(self, error: Exception) -> str:
        """Log the failure; return the warning, which says nothing of the host."""
        logger.error("the plugin %s failed in %s", self.plugin, self.name, exc_info=error)
        return f"the plugin {self.plugin} failed in {self.name}: {type(error).__name__}"


class PortPlugins:
    """The plugins of one port that are on, in the order in which they were named."""

    def __init__(self, given: Iterable[PluginArgument]) -> None:
        self._manager = new_manager()
        self.found: list[FoundPlugin] = []
        self.extensions = BUILT_IN
        for one in load_plugins(given):
            self.found.append(self._added(one) if one.state == "on" else one)
        self._hooks = {name: self._of(name) for name in ("before_run", "on_call", "on_log", "after_run", "close")}
        self._sources: dict[tuple[str, tuple[Callable[..., Any], ...]], FunctionSource] = {}  # the latest last
        self._uses: Counter[FunctionSource] = Counter()  # by runs that have not ended

    @property
    def check_call(self) -> CheckCall | None:
        """What asks the plugins about a call that is allowed; None where no plugin has `on_call`."""
        return self._check if self._hooks["on_call"] else None

    def _added(self, one: FoundPlugin) -> FoundPlugin:
        """Add what a plugin has at the extension points: all of it or, where something is wrong, nothing."""
        self._manager.register(one.implementation, one.name)
        try:
            found = self.extensions
            for each in self._of("sources", one.name):
                kinds = {name: _GuardedKind(one.name, kind) for name, kind in _mapping(each).items()}
                found = replace(found, kinds=found.kinds.with_added(one.name, kinds))
            for each in self._of("credentials", one.name):
                providers = {name: _GuardedProvider(one.name, provider) for name, provider in _mapping(each).items()}
                found = replace(found, providers=found.providers.with_added(one.name, providers))
            for each in self._of("engines", one.name):
                engines = {engine.name: engine for engine in each.call_now()}
                if wrong := next((name for name, engine in engines.items() if engine.subset not in (None, *SUBSETS)), None):
                    raise OptionError(f"the engine {wrong!r:.60} has a subset that Gloveport does not know")
                found = replace(found, engines=found.engines.with_added(one.name, engines))
        except GloveportError as error:
            return self._removed(one, error.message)
        except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
            return self._removed(one, f"{type(error).__name__}: {error}")
        for name in found.engines:
            if found.engines.plugin_of(name) == one.name:
                add_engine(found.engines[name])
        self.extensions = found
        return one

    def _removed(self, one: FoundPlugin, problem: str) -> FoundPlugin:
        self._manager.unregister(name=one.name)
        return replace(one, state="failed", problem=problem)

    def _of(self, name: str, plugin: str | None = None) -> tuple[_Hook, ...]:
        """Return the implementations of a hook, those of the first plugin first."""
        found = getattr(self._manager.hook, name).get_hookimpls()  # pluggy itself calls the last one first
        hooks = (_Hook(one.plugin_name, name, one.function, one.argnames) for one in found)
        return tuple(one for one in hooks if plugin is None or one.plugin == plugin)

    # Runs.

    async def around(self, run: Run, request: RunRequest, held: HeldRun | None = None) -> Outcome:
        """Run a program with what plugins add to it, and tell them how it ended."""
        if request.caller is not None:  # a snippet is a part of the run that calls it
            return await run(request, held)
        warnings: list[str] = []
        about = await off_loop_if(is_large(request.input), _about, request)
        request = await self._prepared(request, about, warnings)
        try:
            outcome = await run(self._listened(request, about, warnings), held)
        except asyncio.CancelledError:
            if held is None or not held.is_released:
                await self._ended(about, Outcome(request.run, "cancelled"), [])
            raise
        finally:
            await self._release(request.added_sources)
        await self._ended(about, outcome, warnings)
        return replace(outcome, warnings=(*outcome.warnings, *dict.fromkeys(warnings))) if warnings else outcome

    async def _prepared(self, request: RunRequest, about: StartingRun, warnings: list[str]) -> RunRequest:
        for hook in self._hooks["before_run"]:
            try:
                added = await hook.call(run=about)
                if added is not None:
                    request = self._with(request, hook.plugin, added)
            except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
                warnings.append(hook.failed(error))
        return request

    def _with(self, request: RunRequest, plugin: str, added: Additions) -> RunRequest:
        if not isinstance(added, Additions):
            raise TypeError(f"before_run returns Additions(…) or None, not {type(added).__name__}")
        if tools := tuple(added.tools):
            request = replace(request, added_sources=(*request.added_sources, self._source(plugin, tools)))
        if request.resumed is not None:  # its environment and its input are recorded
            return request
        if not all(isinstance(part, str) for pair in added.env.items() for part in pair):
            raise TypeError("env must map text to text")
        request = replace(request, env={**added.env, **request.env})
        if added.input:
            given = {} if request.input is NO_INPUT else request.input
            if not isinstance(given, Mapping):
                raise TypeError("the input of this run is no object that members could be added to")
            request = replace(request, input={**copy.deepcopy(dict(added.input)), **given})
        return request

    def _source(self, plugin: str, tools: tuple[Callable[..., Any], ...]) -> FunctionSource:
        """Return the functions of a plugin as a source: the same ones as the same source."""
        found = self._sources.pop((plugin, tools), None) or functions(tools, name=plugin)
        self._sources[plugin, tools] = found
        self._uses[found] += 1
        return found

    async def _release(self, sources: Iterable[FunctionSource]) -> None:
        """Close functions that no run uses, but for the latest: most plugins add the same ones to each run."""
        self._uses.subtract(sources)
        for key in [key for key, source in self._sources.items() if not self._uses[source]][:-MAX_KEPT_SOURCES]:
            source = self._sources.pop(key)
            del self._uses[source]
            await source.close()

    def _listened(self, request: RunRequest, about: StartingRun, warnings: list[str]) -> RunRequest:
        """Return the request with `on_log` as one more listener to its events."""
        hooks, on_event = list(self._hooks["on_log"]), request.on_event
        if not hooks:
            return request

        def listen(event: Event) -> None:
            if event.log is not None:
                self._log(hooks, about, event.log, warnings)
            if on_event is not None:
                on_event(event)

        return replace(request, on_event=listen)

    @staticmethod
    def _log(hooks: list[_Hook], about: StartingRun, line: LogLine, warnings: list[str]) -> None:
        for hook in tuple(hooks):
            try:
                hook.call_now(run=about, line=line)
            except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
                warnings.append(hook.failed(error))
                hooks.remove(hook)  # for this run: a program may write a million lines

    async def _ended(self, about: StartingRun, outcome: Outcome, warnings: list[str]) -> None:
        for hook in self._hooks["after_run"]:
            try:
                await hook.call(run=about, outcome=outcome)
            except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
                warnings.append(hook.failed(error))

    async def _check(self, run: str, agent: str, tool: Tool, args: Mapping[str, Any]) -> str | None:
        """Return why a plugin denies an allowed call. One that fails denies it: a check that was not made is no consent."""
        for hook in self._hooks["on_call"]:
            try:
                own = await off_loop_if(is_large(args), copy.deepcopy, dict(args))
                reason = await hook.call(call=AllowedCall(run, agent, tool.address, own, tool.writes))
            except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
                return f"{hook.failed(error)}, so the call is denied"
            if reason is not None:
                return f"the plugin {hook.plugin}: {reason if isinstance(reason, str) and reason else 'no reason given'}"
        return None

    def commands(self) -> dict[str, click.Command]:
        """Return the commands of the plugins, by name; of two with the same name, the first. One that fails is named."""
        found: dict[str, click.Command] = {}
        for hook in self._of("commands"):
            try:
                for command in hook.call_now():
                    found.setdefault(command.name, _GuardedCommand(hook.plugin, command).command)
            except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
                hook.failed(error)
        return found

    async def close(self) -> None:
        """Close the plugins, the last one first."""
        for hook in reversed(self._hooks["close"]):
            try:
                await hook.call()
            except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
                hook.failed(error)
        for source in self._sources.values():
            await source.close()


def _about(request: RunRequest) -> StartingRun:
    """Return a run as plugins see it: a copy."""
    given = None if request.input is NO_INPUT else copy.deepcopy(request.input)
    about = request.run, request.agent, request.language, request.code, dict(request.env), given, request.session
    return StartingRun(*about, is_resumed=request.resumed is not None)


def _mapping(hook: _Hook) -> Mapping[str, Any]:
    found = hook.call_now()
    if not isinstance(found, Mapping):
        raise OptionError(f"its hook {hook.name} returns {type(found).__name__}, not a mapping by name")
    return found


class _GuardedKind:
    """A kind of source of a plugin. A failure that is no error of ours names the plugin."""

    def __init__(self, plugin: str, kind: SourceKind) -> None:
        self._plugin, self._kind = plugin, kind

    def recognises_location(self, location: str) -> bool:
        return self._recognises(self._kind.recognises_location, location)

    def recognises_text(self, start: bytes) -> bool:
        return self._recognises(self._kind.recognises_text, start)

    def _recognises(self, ask: Callable[[Any], bool], of: str | bytes) -> bool:
        try:
            return ask(of) is True
        except Exception as error:
            logger.error("the plugin %s failed to recognise a source", self._plugin, exc_info=error)
            return False

    def load(self) -> None:
        try:
            self._kind.load()
        except Exception as error:
            raise self._named(error) from error

    async def open(self, config: SourceConfig, context: SourceContext, download: Reply | None) -> Source:
        try:
            return await self._kind.open(config, context, download)
        except Exception as error:
            raise self._named(error) from error

    def _named(self, error: Exception) -> GloveportError:
        if isinstance(error, GloveportError):
            return error
        return OptionError(f"the plugin {self._plugin} failed to open it: {type(error).__name__}: {error}")


class _GuardedCommand:
    """A command of a plugin. A failure that is neither click's nor ours names the plugin."""

    def __init__(self, plugin: str, command: click.Command) -> None:
        self._plugin, self._invoke = plugin, command.invoke
        self.command = copy.copy(command)
        self.command.invoke = self._guarded

    def _guarded(self, ctx: click.Context) -> int:
        import click

        try:
            found = self._invoke(ctx)
        except (GloveportError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            logger.error("the plugin %s failed in its command %s", self._plugin, ctx.info_name, exc_info=error)
            message = f"the plugin {self._plugin} failed in its command {ctx.info_name}: {type(error).__name__}"
            raise GloveportError(message, code="internal-error") from error
        return found if isinstance(found, int) else 0


class _GuardedProvider:
    """A provider of credentials of a plugin. What it raises is not shown: it may hold the secret."""

    def __init__(self, plugin: str, provider: CredentialProvider) -> None:
        self._plugin, self._provider = plugin, provider

    async def read(self, name: str) -> str | None:
        try:
            return await self._provider.read(name)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            message = f"the plugin {self._plugin} can't read the credential: {type(error).__name__}"
            raise ToolError(message, code="auth-required", setting="look at the plugin, and try again") from None

    def wanted(self, name: str) -> str:
        try:
            return str(self._provider.wanted(name))
        except Exception:  # noqa: BLE001 - as above
            return f"ask the plugin {self._plugin} for it"
