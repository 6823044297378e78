"""The settings of one watch, with those of its groups and of the whole installation.

The precedence is that of changedetection.io: lists of filters and texts are joined, notifications come from
the first of watch, group and installation that has some and is not muted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from aioflow.service.importing.backup_files import BackupContent, JsonObject

_OLD_NAMES = {"include_filters": "css_filter"}


class SettingsReader:
    """Reads the settings of one watch; values of a wrong type are left out, with a note."""

    def __init__(self, watch: JsonObject, content: BackupContent) -> None:
        self._watch = watch
        self._application = _table(content.settings, "application")
        self._requests = _table(content.settings, "requests")
        self._global_headers = _table(content.settings, "headers")
        self.tags = list(_tags_of(watch, content.tags))
        named = watch.get("tags")
        self.notes = [
            f"Its group was left out: {reason}."
            for uuid, reason in content.broken_tags.items()
            if isinstance(named, list) and uuid in named
        ]

    def text(self, key: str) -> str:
        return self._text(self._watch, key)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._watch.get(key)
        return default if value is None else value is True or value in ("true", "True", 1)

    def whole_installation(self, key: str) -> Any:
        """Return a setting of the whole installation."""
        return self._application.get(key)

    def raw(self, key: str) -> Any:
        return self._watch.get(key)

    def is_set(self, key: str) -> bool:
        return bool(self._watch.get(key))

    def texts(self, key: str, *, with_global: bool = False) -> list[str]:
        """Return a list of the watch, of its groups and perhaps of the installation, each text once."""
        found = [*self._texts(self._watch, key)]
        for tag in self.tags:
            found += self._texts(tag, key)
        if with_global:
            found += self._texts(self._application, f"global_{key}")
        return list(dict.fromkeys(each.strip() for each in found if each.strip()))

    def cascading(self, key: str) -> Any:
        """Return a setting of notifications from the watch, a group or the installation."""
        for level in (self._watch, *self.tags):
            if level.get(key) and not level.get("notification_muted"):
                return level[key]
        return self._application.get(key)

    def cascading_texts(self, key: str) -> list[str]:
        return [*self._as_texts(self.cascading(key), key)]

    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for level in (self._global_headers, *(_table(tag, "headers") for tag in self.tags)):
            found.update(self._pairs(level))
        found.update(self._pairs(_table(self._watch, "headers")))
        return found

    def intervals(self) -> tuple[Any, ...]:
        """Return the settings with a time between checks, in their order of precedence."""
        own = (self._watch.get("time_between_check"), self._watch.get("minutes_between_check"))
        others = (self._requests.get("time_between_check"), self._requests.get("minutes_between_check"))
        use_default = self._watch.get("time_between_check_use_default", False) is True
        return others if use_default else (*own, *others)

    def hours_of_week(self) -> Mapping[str, Any]:
        """Return the hours of the week that checks are limited to."""
        use_default = self._watch.get("time_between_check_use_default", False) is True
        return _table(self._requests if use_default else self._watch, "time_schedule_limit")

    def _text(self, level: JsonObject, key: str) -> str:
        value = level.get(key)
        if value is None or value is False:
            return ""
        if not isinstance(value, str):
            self.notes.append(f"The setting {key} is no text, and was left out.")
            return ""
        return value.strip()

    def _texts(self, level: JsonObject, key: str) -> Iterator[str]:
        value = level.get(key)
        if not value and key in _OLD_NAMES:
            value = level.get(_OLD_NAMES[key])
        yield from self._as_texts(value, key)

    def _as_texts(self, value: Any, key: str) -> Iterator[str]:
        if not value:
            return
        values = value if isinstance(value, list) else [value]
        for each in values:
            if isinstance(each, str):
                yield each
            else:
                self.notes.append(f"The setting {key} has a value that is no text, which was left out.")

    def _pairs(self, value: JsonObject) -> dict[str, str]:
        pairs = {}
        for name, each in value.items():
            if isinstance(each, str | int | float) and not isinstance(each, bool):
                pairs[name] = str(each)
            else:
                self.notes.append(f"The header {name} has a value that is no text, and was left out.")
        return pairs


def _table(level: Mapping[str, Any], key: str) -> JsonObject:
    value = level.get(key)
    return value if isinstance(value, dict) else {}


def _tags_of(watch: JsonObject, tags: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    """Yield the groups of a watch: those that it names, and those whose pattern its address matches."""
    named = watch.get("tags")
    names = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    for uuid in names:
        if uuid in tags:
            yield tags[uuid]
    url = watch.get("url")
    for uuid, tag in tags.items():
        if uuid not in names and isinstance(url, str) and _matches(tag, url.lower()):
            yield tag


def _matches(tag: JsonObject, url: str) -> bool:
    pattern = tag.get("url_match_pattern")
    if not isinstance(pattern, str) or not pattern.strip():
        return False
    pattern = pattern.strip().lower()
    return fnmatch(url, pattern) if any(each in pattern for each in "*?[") else pattern in url


def tag_titles(watch: JsonObject, tags: list[JsonObject]) -> tuple[str, ...]:
    """Return the names of the groups of a watch; very old watches have them as one text."""
    titles = [
        tag["title"].strip() for tag in tags if isinstance(tag.get("title"), str) and tag["title"].strip()
    ]
    old = watch.get("tag")
    if isinstance(old, str):
        titles += [each.strip() for each in old.split(",") if each.strip()]
    return tuple(dict.fromkeys(titles))
