"""Tools by their meaning, with the extra `gloveport[semantic]`: word vectors, read from the files of package `wordllama`.

Nothing is ever downloaded: where the package or its files are missing, search goes by words alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gloveport.types import Tool

logger = logging.getLogger("gloveport")

WEIGHTS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
LONGEST = 300
LEAST = 0.3
# How much the first places of a list count for more than the later ones, when two lists become one.
RANK = 3


class EmbeddingIndex:
    """The meaning of each tool's name and summary as a vector; made by `embed_tools`."""

    def __init__(self, model: Any, tools: Sequence[Tool]) -> None:
        self._model = model
        self._vectors = model.embed([_text(tool) for tool in tools], norm=True) if tools else None

    def nearest(self, query: str, limit: int) -> list[int]:
        """The places of the tools whose meaning is nearest to the query's."""
        if self._vectors is None:
            return []
        near = self._vectors @ self._model.embed([query[:LONGEST].encode("utf-8", "replace").decode()], norm=True)[0]
        return [int(place) for place in near.argsort()[::-1][:limit] if near[place] >= LEAST]


def embed_tools(tools: Sequence[Tool]) -> EmbeddingIndex | None:
    """The meanings of these tools, or None without the extra."""
    found = importlib.util.find_spec("wordllama")
    folder = Path(found.origin).parent if found and found.origin else None
    if folder is None or not (folder / WEIGHTS).is_file() or not (folder / TOKENIZER).is_file():
        return None
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        with _own_logging():
            from wordllama.inference import WordLlamaInference

        weights = load_file(str(folder / WEIGHTS))["embedding.weight"]
        return EmbeddingIndex(WordLlamaInference(weights, Tokenizer.from_file(str(folder / TOKENIZER))), tools)
    except (ImportError, KeyError, OSError) as error:
        logger.warning("search goes by words alone: wordllama can't be used: %s", error)
        return None


@contextlib.contextmanager
def _own_logging() -> Iterator[None]:
    """Keep the process's logging as it is: wordllama's import would have every library's INFO lines printed."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def fuse_rankings(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Two ranked lists as one: what stands high in either stands high in it."""
    scores: dict[int, float] = {}
    for ranked in (first, second):
        for rank, place in enumerate(ranked):
            scores[place] = scores.get(place, 0.0) + 1 / (RANK + rank)
    return sorted(scores, key=lambda place: -scores[place])


def _text(tool: Tool) -> str:
    words = re.sub(r"[._]", " ", tool.address.partition(".")[2])
    return f"{words}. {tool.description.partition(chr(10))[0]}"[:LONGEST]
