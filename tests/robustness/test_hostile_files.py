"""Files that somebody means ill with: without end, without a writer, with two meanings, with half of a character."""

import gzip
import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances import best, load
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import DdloptError, InstanceError, StoreError, plain
from ddlopt.models.reading import UnreadableError, parsed, read_bytes, reading_up_to

TINY_JSON = load("topology/tiny-n4-d2").to_json().encode()
START = '{"family": "topology", "name": "x", '


def bomb(path, size):
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(size // 2**20):
            file.write(b"[" * 2**20)
    return path


HOSTILE = {
    "twice.json": (b'{"family": "topology", "family": "gossip"}', "the key 'family' stands twice"),
    "half.json": (START.encode() + b'"source": "\\ud800"}', r"an unpaired surrogate (U+D800)"),
    "halves.json": (START.encode() + b'"source": "\\udc00\\ud800"}', r"an unpaired surrogate (U+DC00)"),
    "deep.json": (b"[" * 200_000, "nested too deeply"),
    "digits.json": (b'{"family": ' + b"9" * 5000 + b"}", "digits"),
    "nan.json": (START.encode() + b'"degree": NaN}', "NaN is not a number"),
    "bytes.json": (b"\xff\xfe\x00", "UTF-8"),
    "no.json.gz": (b"123", "no gzip file"),
    "cut.json.gz": (gzip.compress(b"{}" * 1000)[:-12], "truncated"),
    "after.json.gz": (gzip.compress(b"{}") + b"rubbish", "no gzip file"),
    "empty.json.gz": (b"", "empty"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_one_line_for_each(tmp_path, name):
    content, said = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    for read in (ddlopt.load, Solution.from_file):
        with one_line(DdloptError, said):
            read(tmp_path / name)


def test_what_unpacks_without_end_is_not_unpacked(tmp_path):
    path = bomb(tmp_path / "bomb.json.gz", 80 * 2**20)
    assert path.stat().st_size < 2**20
    with pytest.raises(InstanceError, match=r"more than 67108864 bytes; ddlopt --max-file-mb N"):
        ddlopt.load(path)


def test_the_limit_can_be_lifted(tmp_path):
    path = tmp_path / "file.json.gz"
    path.write_bytes(gzip.compress(b" " * 3000) + gzip.compress(b"{}") + b"\0" * 100)
    with reading_up_to(3001), pytest.raises(UnreadableError, match="more than 3001 bytes"):
        read_bytes(path)
    with reading_up_to(3002):
        assert read_bytes(path) == b" " * 3000 + b"{}"


def test_the_limit_of_the_command_line_ends_with_it(tmp_path, call):
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (2 * 2**20))
    code, _, told = call("--max-file-mb", "1", "show", path)
    assert code == 2
    assert "more than 1048576 bytes" in told
    code, _, told = call("show", path)
    assert "is empty" in told


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.mkdir()], ids=["pipe", "folder"])
def test_only_regular_files_are_read(tmp_path, make):
    make(tmp_path / "odd.json")
    with pytest.raises(UnreadableError):
        read_bytes(tmp_path / "odd.json")


@pytest.fixture
def piped():
    """The path of a pipe that has been handed over open, with some bytes in it."""
    readers = []

    def pipe(content):
        reader, writer = os.pipe()
        os.write(writer, content)
        os.close(writer)
        readers.append(reader)
        return f"/dev/fd/{reader}"

    yield pipe
    for reader in readers:
        os.close(reader)


def test_a_pipe_that_was_handed_over_is_read_once(piped):
    path = piped(TINY_JSON)
    assert load(path).name == "tiny-n4-d2"
    with pytest.raises(InstanceError, match=rf"{path}: cannot be read: nothing comes from it; .* read only once"):
        load(path)
    assert load(piped(gzip.compress(TINY_JSON))).name == "tiny-n4-d2"
    with pytest.raises(InstanceError, match="more than 50 bytes"), reading_up_to(50):
        load(piped(TINY_JSON))
    with pytest.raises(InstanceError, match=r"/dev/fd/\d+: not valid JSON"):
        load(piped(b"{"))


def test_a_descriptor_that_is_no_pipe_is_as_its_file(tmp_path):
    file = tmp_path / "own.json"
    file.write_bytes(TINY_JSON)
    with file.open() as opened:
        assert [load(f"/proc/self/fd/{opened.fileno()}").name for _ in range(2)] == ["tiny-n4-d2"] * 2
    with pytest.raises(InstanceError, match="Bad file descriptor"):
        load("/dev/fd/999999")


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_commands_read_standard_input(name, piped, call):
    """Some look more than once, to see what it is."""
    solution = piped(best("topology/tiny-n4-d2").to_json().encode())
    before = os.dup(0)
    os.dup2(int(piped(TINY_JSON).rpartition("/")[2]), 0)
    try:
        code, out, _ = call("check", name, solution)
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert (code, "tiny-n4-d2: feasible" in out) == (0, True)


def test_no_terminal_is_waited_for():
    ours, theirs = os.openpty()
    try:
        with pytest.raises(UnreadableError, match="it is a terminal"):
            read_bytes(f"/dev/fd/{theirs}")
    finally:
        os.close(ours)
        os.close(theirs)


def test_no_device_is_read():
    with pytest.raises(UnreadableError, match="not a regular file"):
        read_bytes("/dev/zero")


def test_whole_characters_of_two_halves_are_read():
    assert parsed('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def test_no_message_steers_a_terminal(tmp_path, call):
    path = tmp_path / "colour.json"
    path.write_text('{"family": "topology", "name": "a\\u001b[31mred", "\\u001b]0;title\\u0007": 1}')
    code, _, told = call("show", path)
    assert code == 2
    assert all(each.isprintable() or each == "\n" for each in told)


def test_errors_print_whatever_they_say():
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as out:
        print(StoreError("a\x1b[31mb\n\ud800"))
        out.seek(0)
        assert out.read() == "a\\x1b[31mb \\ud800\n"
    assert plain("é ∑") == "é ∑"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["list", "check topology/tiny-n4-d2 DESIGN"])
def test_a_full_disk_is_one_line(tmp_path, command):
    design = tmp_path / "design.json"
    design.write_text(best("topology/tiny-n4-d2").to_json())
    words = command.replace("DESIGN", str(design)).split()
    with Path("/dev/full").open("w") as full:
        run = subprocess.run([sys.executable, "-m", "ddlopt", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1
    assert run.stderr == "ddlopt: nothing more can be written: No space left on device\n"


def test_a_message_is_no_longer_than_a_person_reads():
    told = str(InstanceError(f"a.csv: the header has: {'x' * 100_000}, which is no header"))
    assert told.startswith("a.csv: the header has: xx")
    assert told.endswith("xx, which is no header")
    assert len(told) < 3000
