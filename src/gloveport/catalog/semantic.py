"""Search tools by meaning, with the extra `gloveport[semantic]`: word vectors from the files of the package `wordllama`.

Nothing is ever downloaded: if the package or its files are missing, search uses words alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gloveport.types import Tool

logger = logging.getLogger("gloveport")

WEIGHTS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
MAX_TEXT_CHARS = 300
BATCH_TEXTS = 200  # that are embedded in one step, which keeps the interpreter lock
MIN_SIMILARITY = 0.3
# A tool at rank r (from 0) scores 1 / (RANK_OFFSET + r): a small offset favours the first ranks when two lists are fused.
RANK_OFFSET = 3


class EmbeddingIndex:
    """A vector for the name and summary of each tool; made by `embed_tools`."""

    def __init__(self, model: Any, tools: Sequence[Tool]) -> None:
        from numpy import concatenate

        self._model = model
        texts = [_text(tool) for tool in tools]
        batches = [model.embed(texts[at : at + BATCH_TEXTS], norm=True) for at in range(0, len(texts), BATCH_TEXTS)]
        self._vectors = concatenate(batches) if batches else None

    def nearest(self, query: str, limit: int) -> list[int]:
        """Return the indices of the tools whose vectors are nearest to the query's."""
        if self._vectors is None:
            return []
        near = self._vectors @ self._model.embed([query[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode()], norm=True)[0]
        return [int(index) for index in near.argsort()[::-1][:limit] if near[index] >= MIN_SIMILARITY]


def embed_tools(tools: Sequence[Tool]) -> EmbeddingIndex | None:
    """Return the embeddings of the tools, or None if the extra is not installed."""
    model = load_model()
    return None if model is None else EmbeddingIndex(model, tools)


@cache
def load_model() -> Any:
    """Return the model, loaded once; None if the extra is not installed."""
    found = importlib.util.find_spec("wordllama")
    folder = Path(found.origin).parent if found and found.origin else None
    if folder is None or not (folder / WEIGHTS).is_file() or not (folder / TOKENIZER).is_file():
        return None
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        with _logging_unchanged():
            from wordllama.inference import WordLlamaInference

        weights = load_file(str(folder / WEIGHTS))["embedding.weight"]
        return WordLlamaInference(weights, Tokenizer.from_file(str(folder / TOKENIZER)))
    except (ImportError, KeyError, OSError) as error:
        logger.warning("search uses words alone: can't use wordllama: %s", error)
        return None


@contextlib.contextmanager
def _logging_unchanged() -> Iterator[None]:
    """Restore the process's logging: importing wordllama would print the INFO lines of every library."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def fuse_rankings(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Fuse two ranked lists into one: what ranks high in either ranks high in the result."""
    scores: dict[int, float] = {}
    for ranked in (first, second):
        for rank, index in enumerate(ranked):
            scores[index] = scores.get(index, 0.0) + 1 / (RANK_OFFSET + rank)
    return sorted(scores, key=lambda index: -scores[index])


def _text(tool: Tool) -> str:
    words = re.sub(r"[._]", " ", tool.address.partition(".")[2])
    return f"{words}. {tool.description.partition(chr(10))[0]}"[:MAX_TEXT_CHARS]
