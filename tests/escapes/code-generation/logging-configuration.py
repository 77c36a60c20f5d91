# Tries: a logging configuration, plain data, that names a function to call.
# Origin: logging.config.dictConfig's "()" factories.

import logging.config

logging.config.dictConfig({
    "version": 1,
    "handlers": {"one": {"()": "builtins.open", "file": input["write"], "mode": "w"}},
})
