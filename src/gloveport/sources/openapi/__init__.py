"""APIs that an OpenAPI document describes: document → operations → tools, and calls → requests → values."""
