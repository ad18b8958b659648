"""The help: its commands, its options, and examples whose output is current."""

import argparse
import re
import shlex
import textwrap

import numpy as np
import pytest

import tf32dtype as td
from tests.support.command_line import plain
from tf32dtype._cli import main as program
from tf32dtype._files.safetensors.schemes import SCHEMES

pytestmark = pytest.mark.once

VERBS = set(
    """add allow change check choose classify compare compute convert copy count
    exclude exit find include keep leave list measure multiply name pass print read
    replace report resume round run say scale search seed set show sort start stop
    store try use watch write""".split()
)


def parsers():
    """Return the parser of each command by its name."""
    return {name: parser_of(name) for name in program._COMMANDS}


def parser_of(command):
    (commands,) = (
        action
        for action in program._parser(command)._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return commands.choices[command]


def options():
    """Yield the options of all commands."""
    for command, parser in parsers().items():
        for action in parser._actions:
            if "-h" not in action.option_strings:
                yield pytest.param(action, id=f"{command} {action.dest}")


def test_the_help_of_convert_lists_every_scheme():
    text = parser_of("convert")._option_string_actions["--scheme"].help
    assert SCHEMES[-1] == "tf32dtype"
    assert f"{', '.join(SCHEMES[:-1])} or tf32dtype;" in text


def test_every_command_is_listed_once_by_its_question():
    listed = [name for names in program._QUESTIONS.values() for name in names]
    assert sorted(listed) == sorted(program._COMMANDS)
    for row in program._COMMANDS.values():
        assert row.summary.partition(" ")[0] in VERBS
        assert row.summary[-1] not in ".;,"


def test_the_list_of_commands(capsys):
    lines = plain(capsys).splitlines()
    assert max(map(len, lines)) <= 79
    for question, names in program._QUESTIONS.items():
        at = lines.index(question)
        assert question.endswith("?")
        shown = lines[at + 1 : at + 1 + len(names)]
        assert [line.split()[0] for line in shown] == [*names]


@pytest.mark.parametrize("option", [*options()])
def test_an_option_has_a_verb_and_a_default(option):
    assert option.help.partition(" ")[0] in VERBS
    if option.option_strings and not option.required:
        # The required options of `tune` may also follow its program.
        assert "default:" in option.help or option.help.endswith("(required)")
    if option.nargs in (None, 1) and not option.choices:
        assert option.metavar


@pytest.mark.parametrize("command", parsers())
def test_options_are_in_groups(command):
    parser = parsers()[command]
    groups = {x.title: x._group_actions for x in parser._action_groups}
    assert {x.dest for x in groups["options"]} == {"help"}
    assert groups["positional arguments"] == []
    assert {title for title, actions in groups.items() if actions} <= {
        *("options", "Input", "Program", "Result", "Precision", "Scope", "Search"),
        *("PyTorch", "Output"),
    }


def examples_of(text):
    """Yield the commands of a docstring, each with the lines below it."""
    for example in re.findall(r"^  \$ .*\n(?:  .*\n|\n)*", text, re.M):
        command, *lines = textwrap.dedent(example).strip().splitlines()
        yield command.removeprefix("$ "), lines


def examples():
    for command, parser in parsers().items():
        if command != "demo":  # test_demo.py checks its example
            for line, shown in examples_of(parser.description):
                if shown:
                    yield pytest.param(line, shown, id=line)


def is_like(output, shown):
    """Return whether lines are as shown, where three dots match anything."""
    whole = "".join(
        r"(.*\n)*"
        if line == "..."
        else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in shown
    )
    return re.fullmatch(whole, output) is not None


def test_likeness():
    assert is_like("a\nb 1\nc\nd\n", ["a", "b ...", "...", "d"])
    assert not is_like("a\nb 1\nc\n", ["a", "b ...", "...", "d"])
    assert not is_like("a\nc 1\n", ["a", "b ..."])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    np.save(folder / "A.npy", rng.standard_normal((20, 30)))
    np.save(folder / "B.npy", rng.standard_normal((30, 10)))
    x = rng.standard_normal((64, 64), np.float32)
    td.safetensors.save(
        folder / "model.safetensors",
        {"layer.0.weight": x, "layer.0.bias": x[0], "lm_head": x},
    )
    td.safetensors.save(
        folder / "other.safetensors",
        {"layer.0.weight": x.astype(td.bfloat16), "lm_head": x},
    )
    a, b = rng.standard_normal((2, 256, 256)).astype(td.bfloat16)
    d = td.tensor_core.matmul(a, b, device="H100")
    rows, columns = slice(64, 128), slice(128, 160)
    d[rows, columns] = td.tensor_core.matmul(
        a[rows, :224], b[:224, columns], device="H100"
    )
    arrays = {"d": d, "a": a, "b": b, "bias": np.zeros(256, np.float32)}
    for name, array in arrays.items():
        td.save(folder / f"{name}.npy", array)
    return folder


def test_every_command_shows_an_example():
    for name, parser in parsers().items():
        purpose, _, rest = parser.description.partition("\n\n")
        assert len(purpose.splitlines()) == 1, name
        assert rest.startswith("Example")
        assert purpose.partition(" ")[0].lower() in VERBS


@pytest.mark.parametrize(("line", "shown"), [*examples()])
def test_examples_print_what_is_shown(line, shown, files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    # The files differ, and the product is wrong.
    code = int(line.startswith(("tf32dtype diff", "tf32dtype check")))
    output = plain(capsys, *shlex.split(line)[1:], code=code)
    assert is_like(output, shown), output
