import gzip
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from ddlopt.models.errors import OptionError
from ddlopt.models.files import replacing, writable, write_whole, write_whole_packed


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    write_whole(path, "new ü")
    assert path.read_text(encoding="utf-8") == "new ü"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_packed_is_what_a_name_in_gz_says(tmp_path):
    for name in ("a.json", "b.json.gz", "c.json.gz"):
        write_whole_packed(tmp_path / name, "new ü")
    assert (tmp_path / "a.json").read_bytes() == "new ü".encode()
    assert gzip.decompress((tmp_path / "b.json.gz").read_bytes()) == "new ü".encode()
    assert (tmp_path / "b.json.gz").read_bytes() == (tmp_path / "c.json.gz").read_bytes()


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail_halfway():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_new_file_has_the_usual_rights(tmp_path):
    path = tmp_path / "a.json"
    write_whole(path, "")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_a_link_is_followed(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_what_is_no_plain_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        heard = pool.submit(pipe.read_text)
        write_whole(pipe, "text")
        assert heard.result(timeout=10) == "text"
    assert pipe.is_fifo()


def test_a_place_that_cannot_hold_the_file_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"the folder .*missing does not exist"):
        writable(tmp_path / "missing" / "a.json")
    with pytest.raises(OptionError, match="is a folder"):
        writable(tmp_path)
