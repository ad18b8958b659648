"""Copy the other files of a model, and adapt its configuration."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ..._base.whole_files import replacing, write_whole

CONFIG = "config.json"
#: The keys of config.json that describe the scales of weights.
_KEYS = ("quantization_config", "compression_config")
#: Patterns of the names of other files that a model needs, as on Hugging Face.
_COPIED = (
    *("generation_config.json", "tokenizer*", "special_tokens_map.json"),
    *("added_tokens.json", "vocab*.json", "vocab*.txt", "merges.txt", "*.model"),
    *("*.tiktoken", "preprocessor_config.json", "processor_config.json"),
    *("video_preprocessor_config.json", "chat_template*", "*.jinja"),
    *("configuration_*.py", "modeling_*.py", "tokenization_*.py", "processing_*.py"),
    "LICENSE*",
)
_EXISTS = "it already exists; use --force to overwrite it"


@dataclass
class ModelFiles:
    """The files of a model that were copied, and those that were not."""

    #: the names of files in the output's folder that equal those of the input
    copied: list[str] = field(default_factory=list)
    #: the names of files that were not copied, with the reasons
    not_copied: dict[str, str] = field(default_factory=dict)
    #: the path of the written configuration; None if it was not written
    config: str | None = None


def copy(
    source: Sequence[str],
    folder: str | None,
    quantization: dict[str, Any] | None,
    *,
    is_known: bool,
    force: bool,
) -> ModelFiles:
    """Copy the files of a model to the output's folder, and write its config.json.

    Parameters
    ----------
    source : sequence of str
        The files with the tensors of the input. The folder of the first file is the
        folder of the model if it has a config.json.
    folder : str or None
        The folder of the output; None if the output is one file: nothing is copied.
    quantization : dict or None
        The `quantization_config` of the output, which replaces that of the input.
    is_known : bool
        Whether the output's `quantization_config` is known. If not, config.json is not
        written.
    force : bool
        Replace other files of these names. Copies of an earlier run stay.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    found = ModelFiles()
    own = os.path.dirname(os.path.abspath(source[0]))
    is_model = os.path.isfile(os.path.join(own, CONFIG))
    if not is_model or folder == os.path.realpath(own):
        return found
    tensors = {os.path.basename(path) for path in source}
    for name in sorted(os.listdir(own)):
        path = os.path.join(own, name)
        if name in tensors or name.startswith(".") or not os.path.isfile(path):
            continue
        is_config = name == CONFIG
        if not is_config and not any(fnmatchcase(name, x) for x in _COPIED):
            found.not_copied[name] = "convert copies the files that a model needs"
        elif folder is None:
            found.not_copied[name] = "OUT is a file"
        elif is_config:
            _write_config(path, folder, quantization, is_known, force, found)
        else:
            _copy(path, os.path.join(folder, name), force, found)
    return found


def _copy(path: str, target: str, force: bool, found: ModelFiles) -> None:
    name = os.path.basename(path)
    if os.path.lexists(target):
        if os.path.isfile(target) and filecmp.cmp(path, target, shallow=False):
            found.copied.append(name)
            return
        if not force:
            found.not_copied[name] = _EXISTS
            return
    with open(path, "rb") as stream, replacing(target) as file:
        shutil.copyfileobj(stream, file)
    found.copied.append(name)


def _write_config(
    path: str,
    folder: str,
    quantization: dict[str, Any] | None,
    is_known: bool,
    force: bool,
    found: ModelFiles,
) -> None:
    if not is_known:
        found.not_copied[CONFIG] = "its quantization_config is not known"
        return
    try:
        with open(path, encoding="utf-8") as stream:
            config = json.load(stream)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        found.not_copied[CONFIG] = "it is not a JSON object"
        return
    for key in _KEYS:
        config.pop(key, None)
    if quantization is not None:
        config[_KEYS[0]] = quantization
    target = os.path.join(folder, CONFIG)
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    if os.path.lexists(target) and not force and not _holds(target, text):
        found.not_copied[CONFIG] = _EXISTS
        return
    write_whole(target, text)
    found.config = target


def _holds(path: str, text: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read() == text.encode()
    except OSError:
        return False
