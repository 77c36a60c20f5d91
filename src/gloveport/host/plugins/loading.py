"""The plugins that are turned on: which of them could be loaded, and why the others could not."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import pluggy
from pluggy import PluginValidationError

from gloveport.config import PluginConfig, plugin_from
from gloveport.errors import GloveportError, OptionError
from gloveport.host.plugins import PluginArgument
from gloveport.host.plugins.installed import installed_plugins, origin_of
from gloveport.host.plugins.trust import needs_trust, trusted_files, was_trusted
from gloveport.plugins.hooks import PROJECT, Hooks
from gloveport.sources.functions.modules import import_from
from gloveport.suggestions import did_you_mean
from gloveport.tool_names import RESERVED_SOURCE_NAMES, problem_with

PLUGIN_CLASS = "Plugin"
"""A module whose plugin is an object defines a class of this name, which is created with the options."""
HOOK_NAMES = tuple(name for name in vars(Hooks) if not name.startswith("_"))
ASYNC_HOOKS = ("before_run", "on_call", "after_run", "close")

State = Literal["on", "off", "untrusted", "failed"]


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin and its state: `off` is installed and not named, `untrusted` and `failed` have a `problem`."""

    name: str
    origin: str
    state: State
    hooks: tuple[str, ...] = ()
    problem: str = ""
    hint: str = ""
    implementation: Any = None

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        about = {"name": self.name, "origin": self.origin, "state": self.state, "hooks": list(self.hooks)}
        return about | ({"problem": self.problem, "hint": self.hint} if self.problem else {})


def load_plugins(given: Iterable[PluginArgument]) -> list[FoundPlugin]:
    """Return each plugin in order, loaded or with its problem. It never raises for what a plugin does."""
    found: list[FoundPlugin] = []
    names: set[str] = set()
    for item in given:
        one = _load(plugin_from(item) if isinstance(item, str) else item)
        if one.name in names and one.state == "on":
            one = _failed(one.name, one.origin, "another plugin has the same name", "give the file another name")
        names.add(one.name)
        found.append(one)
    return found


def installed_off(found: Iterable[FoundPlugin]) -> list[FoundPlugin]:
    """Return the installed plugins that are not among the given ones. None of them is imported."""
    known = {one.origin for one in found}
    listed = ((name, origin_of(entry)) for name, entry in installed_plugins().items())
    return [FoundPlugin(name, origin, "off") for name, origin in listed if origin not in known]


def _load(item: PluginConfig | Any) -> FoundPlugin:
    if not isinstance(item, PluginConfig):
        name = getattr(item, "__name__", type(item).__name__).rpartition(".")[2].lower()
        return _checked(name, "given in code", item)
    origin = item.spec
    try:
        if not item.is_file:
            origin = _origin(item)
        if needs_trust(item):
            state = "has changed since you trusted it" if was_trusted(item) else "is not trusted yet"
            problem = f"{item.settings} names it, and it {state}"
            hint = "review it; `gloveport config trust` lets it be imported"
            return FoundPlugin(item.name, origin, "untrusted", problem=problem, hint=hint)
        return _checked(item.name, origin, _created(item, _imported(item)))
    except GloveportError as error:
        return _failed(item.name, origin, error.message, error.hint or "")
    except Exception as error:  # noqa: BLE001 - the outer edge: a plugin may raise anything
        return _failed(item.name, origin, f"{type(error).__name__}: {error}")


def _failed(name: str, origin: str, problem: str, hint: str = "") -> FoundPlugin:
    return FoundPlugin(name, origin, "failed", problem=problem, hint=hint)


def _origin(plugin: PluginConfig) -> str:
    known = installed_plugins()
    entry = known.get(plugin.spec)
    if entry is None:
        meant = did_you_mean(plugin.spec, known) or "`gloveport plugins` lists those that are installed"
        raise OptionError(f"no installed package has a plugin {plugin.spec!r:.60}", hint=meant)
    return origin_of(entry)


def _imported(plugin: PluginConfig) -> Any:
    if plugin.is_file:
        return import_from(plugin.spec, trusted_files(plugin))
    entry = installed_plugins()[plugin.spec]
    found: Any = import_from(entry.module)
    for name in (entry.attr or "").split(".") if entry.attr else ():
        found = getattr(found, name)
    return found


def _created(plugin: PluginConfig, found: Any) -> Any:
    """Return the plugin: a module without a class `Plugin` is one itself, and takes no options."""
    made: Any = getattr(found, PLUGIN_CLASS, None) if isinstance(found, ModuleType) else found
    if inspect.isclass(made):
        create: Any = made
        return create(dict(plugin.options))
    if plugin.options:
        hint = f"a plugin that takes options is a class {PLUGIN_CLASS}(options)"
        raise OptionError(f"it takes no options, and was given {', '.join(map(str, plugin.options))}", hint=hint)
    return found


def _checked(name: str, origin: str, plugin: Any) -> FoundPlugin:
    if (problem := problem_with(name)) or name in RESERVED_SOURCE_NAMES:
        return _failed(name, origin, f"the name {name!a} {problem or 'is reserved'}", "give it another name")
    try:
        manager = new_manager()
        manager.register(plugin, name)
        manager.check_pending()
    except (PluginValidationError, ValueError) as error:
        return _failed(name, origin, str(error).replace("\n", " "), f"the hooks are {', '.join(HOOK_NAMES)}")
    own = {one.name: one for one in manager.get_hookcallers(plugin) or ()}
    for hook, caller in own.items():
        for one in caller.get_hookimpls():
            if one.hookwrapper or one.wrapper:
                return _failed(name, origin, f"its hook {hook} is a wrapper", "a hook sees its own part only")
            if inspect.iscoroutinefunction(one.function) and hook not in ASYNC_HOOKS:
                return _failed(name, origin, f"its hook {hook} is async", f"only {', '.join(ASYNC_HOOKS)} may be")
    if not own:
        return _failed(name, origin, "it has no hooks", "mark its functions with `@hook` of gloveport.plugins")
    return FoundPlugin(name, origin, "on", tuple(hook for hook in HOOK_NAMES if hook in own), implementation=plugin)


def new_manager() -> pluggy.PluginManager:
    """Return a plugin manager that knows the hooks, and no plugin."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    return manager
