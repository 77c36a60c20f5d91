"""Reads `gloveport.toml` into a `Config`.

settings      the merged settings of the user's file and the project's; the sources
governance    `[[rules]]`, `[policy]`, `[agents.NAME]`, `[approvals]` and `[store]`
plugins       the plugins that are turned on
layers        one file: its values, and the line of each key
"""

from gloveport.config.governance import AgentConfig, GovernanceConfig
from gloveport.config.layers import MAX_CONFIG_BYTES, MAX_KEY_PARTS, MAX_SETTINGS
from gloveport.config.plugins import PluginConfig, plugin_from
from gloveport.config.serve import ServeConfig
from gloveport.config.settings import (
    DEFAULT_RESPONSE_BYTES,
    DEFAULT_TIMEOUT_SECONDS,
    SANDBOX_KEYS,
    SOURCE_KINDS,
    TABLES,
    Config,
    SourceConfig,
    config_from,
    load_config,
)

__all__ = [
    "DEFAULT_RESPONSE_BYTES",
    "DEFAULT_TIMEOUT_SECONDS",
    "MAX_CONFIG_BYTES",
    "MAX_KEY_PARTS",
    "MAX_SETTINGS",
    "SANDBOX_KEYS",
    "SOURCE_KINDS",
    "TABLES",
    "AgentConfig",
    "Config",
    "GovernanceConfig",
    "PluginConfig",
    "ServeConfig",
    "SourceConfig",
    "config_from",
    "load_config",
    "plugin_from",
]
