"""Names that look alike: a skeleton that is the same for two names which a reader would take for one (B1)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# Letters of other scripts that common fonts draw like Latin ones (from Unicode's confusables, the identifiers' part).
_PAIRS = (
    "аa еe оo рp сc уy хx ѕs іi їi јj ԁd ԛq ԝw һh ѵv ӏl ьb кk мm нh тt вb гr пn "
    "АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ЅS ІI ЈJ ԌG ԚQ ԜW ѴV ҮY "
    "αa βb γy εe ηn ιi κk νv οo ρp σo τt υu χx ωw "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX "
    "աw եe հh ոn սu օo ցg ղn ɑa ɡg ɩi ɪi ʏy ʀr ʟl ʜh ɴn ʙb ɢg ꜱs ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz "
    "ıi ȷj łl øo đd ħh ŧt ƅb ǀl ſf ѡw ѻo"
)
_TABLE = {ord(pair[0]): pair[-1] for pair in _PAIRS.split()}


def skeleton(name: str) -> str:
    """The name as a reader sees it: compatibility forms unfolded, accents dropped, look-alike letters made Latin."""
    if name.isascii():
        return name
    unfolded = unicodedata.normalize("NFKD", name.translate(_TABLE))
    return "".join(letter for letter in unfolded.translate(_TABLE) if not unicodedata.combining(letter))


def look_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Two different names that look alike, or None. Names that differ in ASCII never do."""
    seen: dict[str, str] = {}
    strange: list[str] = []
    for name in names:
        if name.isascii():
            seen[name] = name
        else:
            strange.append(name)
    for name in strange:
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            return other, name
    return None
