"""Turn an answer into MCP content: the text for the model, then each value that the program emitted, in its own type."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from mcp_types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
)

from gloveport.surfaces.agents.tools import AgentAnswer
from gloveport.surfaces.documents import to_text
from gloveport.values import to_json

MAX_EMITTED_BLOCKS = 32
_MEDIA = re.compile(r"(image|audio)/[\w.+-]{1,60}")


def to_content(answer: AgentAnswer, fit: Callable[[str], str]) -> list[ContentBlock]:
    """Return the text, emitted media, other emitted bytes as resources, and everything else as one text for the user."""
    blocks: list[ContentBlock] = [TextContent(text=answer.text)]
    texts: list[str] = []
    for index, value in enumerate(answer.emitted):
        block = _media(value) or _resource(value, f"{answer.data.get('run', '')}/{index}")
        if block is None:
            texts.append(value if isinstance(value, str) else to_text(to_json(value), indented=False))
        elif len(blocks) <= MAX_EMITTED_BLOCKS:
            blocks.append(block)
        else:
            texts.append(f"[more than {MAX_EMITTED_BLOCKS} images and files: this one is left out]")
    if texts:
        blocks.append(TextContent(text=fit("\n".join(texts)), annotations=Annotations(audience=["user"])))
    return blocks


def _media(value: Any) -> ContentBlock | None:
    """Return image or audio content for `{type: "image", mimeType: "image/png", data}`; data is bytes or base64."""
    if not isinstance(value, Mapping) or value.get("type") not in ("image", "audio"):
        return None
    media, data = value.get("mimeType"), value.get("data")
    if not isinstance(media, str) or not _MEDIA.fullmatch(media) or not media.startswith(value["type"]):
        return None
    text = _base64(data) if isinstance(data, bytes) else data if isinstance(data, str) and _is_base64(data) else None
    if text is None:
        return None
    kind = ImageContent if value["type"] == "image" else AudioContent
    return kind(data=text, mime_type=media)


def _resource(value: Any, name: str) -> EmbeddedResource | None:
    if not isinstance(value, bytes):
        return None
    blob = BlobResourceContents(
        uri=f"gloveport://emitted/{name}", mime_type="application/octet-stream", blob=_base64(value)
    )
    return EmbeddedResource(resource=blob)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        return False
