"""Search tools by meaning, with the extra `gloveport[semantic]`: word vectors from the files of the package `wordllama`.

Nothing is ever downloaded: if the package or its files are missing, search uses words alone.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gloveport.catalog.words import SearchedText, is_stop_word, significant, split
from gloveport.large_values import LockTurns
from gloveport.types import Tool

if TYPE_CHECKING:
    from numpy import ndarray

    Array = ndarray[Any, Any]

logger = logging.getLogger("gloveport")

WEIGHTS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
MAX_WORD_CHARS = 32
MAX_KNOWN_WORDS = 20_000  # a kilobyte each
MAX_NEAR = 60
MIN_SIMILARITY = 0.3
# The score by words is at most 1 for each query. `benchmarks.search` measures these weights.
TOOL_WEIGHT, SOURCE_WEIGHT = 1.5, 0.6


class Model(NamedTuple):
    """The vectors of all tokens, and the tokenizer."""

    vectors: Array
    tokenizer: Any


class EmbeddingIndex:
    """A vector for each tool and for each source; made by `embed_tools`.

    A tool's vector is the mean of two: of its name and summary, and of all its texts. A source's is the mean of its tools'.
    """

    def __init__(self, model: Model, tools: Sequence[Tool]) -> None:
        import numpy

        self._model = model
        names: dict[str, int] = {}
        self._source_of = numpy.array([names.setdefault(tool.source, len(names)) for tool in tools], int)
        self._source_names = names
        self._tools = numpy.zeros((len(tools), model.vectors.shape[1]), numpy.float32)
        self._sources = numpy.zeros((len(names), model.vectors.shape[1]), numpy.float32)
        words, turns = _WordVectors(model), LockTurns()
        for index, tool in enumerate(tools):
            turns.give()  # the tokenizer gives the interpreter lock back for each word
            name, path, source, summary, *rest = SearchedText.of(tool, len(tools))
            head = words.sum(split(" ".join((source, path, name, summary))))
            self._tools[index] = _unit(_unit(head) + _unit(head + words.sum(split("\n".join(rest)))))
            self._sources[self._source_of[index]] += self._tools[index]
        for index in range(len(names)):
            self._sources[index] = _unit(self._sources[index])

    def fuse(self, query: str, scores: Mapping[int, float], source: str | None, limit: int) -> dict[int, float]:
        """Return the best tools, at most so many, by their scores and by nearness to the query, with fused scores."""
        import numpy

        wanted = _unit(numpy.sum(_word_vectors(self._model, significant(split(query))), axis=0))
        near = _similarities(self._tools, wanted)
        if source is not None:
            near[self._source_of != self._source_names.get(source, -1)] = -1
        is_found = near >= max(MIN_SIMILARITY, numpy.sort(near)[-MAX_NEAR:][0] if len(near) else 0)
        fused = TOOL_WEIGHT * near + SOURCE_WEIGHT * _similarities(self._sources, wanted)[self._source_of]
        if scores:
            indices = numpy.fromiter(scores, int, len(scores))
            by_words = numpy.fromiter(scores.values(), numpy.float32, len(scores))
            fused[indices] += by_words / by_words.max()
            is_found[indices] = True
        candidates = is_found.nonzero()[0]
        best = candidates[(-fused[candidates]).argsort(kind="stable")[:limit]]
        return dict(zip(best.tolist(), fused[best].tolist(), strict=True))


class _WordVectors:
    """The vectors of a catalog's words. They repeat, so each is tokenized once. Only the first thousands of words count."""

    def __init__(self, model: Model) -> None:
        import numpy

        self._model = model
        self._rows: dict[str, int] = {}
        # The first row is for stop words, and for words that are ignored.
        self._vectors = numpy.zeros((MAX_KNOWN_WORDS + 1, model.vectors.shape[1]), numpy.float32)

    def sum(self, words: Sequence[str]) -> Array:
        """Return the sum of the words' vectors."""
        if unknown := [word for word in dict.fromkeys(words) if word not in self._rows]:
            self._learn(unknown[: MAX_KNOWN_WORDS - len(self._rows)])
        rows = [row for word in words if (row := self._rows.get(word, 0))]
        return self._vectors[rows].sum(axis=0)

    def _learn(self, words: list[str]) -> None:
        for word, vector in zip(words, _word_vectors(self._model, words), strict=True):
            row = 0 if is_stop_word(word) else len(self._rows) + 1
            self._rows[word] = row
            if row:
                self._vectors[row] = vector


def _word_vectors(model: Model, words: list[str]) -> list[Array]:
    """Return the vector of each word: the sum of those of its tokens, as a text's is that of its words."""
    import numpy

    # Not `encode_batch`: it starts threads, which cost more than they give.
    tokenized = (model.tokenizer.encode(word[:MAX_WORD_CHARS], add_special_tokens=False) for word in words)
    return [model.vectors[tokens.ids].sum(axis=0, dtype=numpy.float32) for tokens in tokenized]


def embed_tools(tools: Sequence[Tool]) -> EmbeddingIndex | None:
    """Return the embeddings of the tools, or None if the extra is not installed."""
    model = load_model()
    return None if model is None else EmbeddingIndex(model, tools)


@cache
def load_model() -> Model | None:
    """Return the model, loaded once; None if the extra is not installed."""
    found = importlib.util.find_spec("wordllama")
    folder = Path(found.origin).parent if found and found.origin else None
    if folder is None or not (folder / WEIGHTS).is_file() or not (folder / TOKENIZER).is_file():
        return None
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        vectors = load_file(str(folder / WEIGHTS))["embedding.weight"]
        return Model(vectors, Tokenizer.from_file(str(folder / TOKENIZER)))
    except (ImportError, KeyError, OSError) as error:
        logger.warning("search uses words alone: can't use wordllama: %s", error)
        return None


def _similarities(vectors: Array, wanted: Array) -> Array:
    """Return the similarity of each vector to one. `@` would wake BLAS threads, which cost 20 times the processor time."""
    import numpy

    return numpy.einsum("ij,j->i", vectors, wanted)


def _unit(vector: Array) -> Array:
    """Return a vector of the same direction and length 1; the null vector as it is."""
    length = float((vector @ vector) ** 0.5)
    return vector / length if length else vector
