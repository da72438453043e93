"""The store of results: one SQLite file that pandas, DuckDB or ``sqlite3`` can read."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from ddlopt.analysis.bench.soundness import fault_of_instance, fault_of_run
from ddlopt.models.errors import OptionError, StoreError, plain
from ddlopt.models.files import writable
from ddlopt.models.reading import UnreadableError, parsed, unpacked
from ddlopt.solvers.contracts import Status

_APPLICATION = 0x64646C6F
"""Marks the file as a store of ours (SQLite's ``application_id``)."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE instances (
        digest TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        family TEXT NOT NULL,
        sense TEXT NOT NULL,
        unit TEXT NOT NULL,
        sizes TEXT NOT NULL,
        source TEXT NOT NULL,
        best_objective REAL
    );
    CREATE TABLE runs (
        key TEXT PRIMARY KEY,
        instance_digest TEXT NOT NULL REFERENCES instances(digest),
        instance TEXT NOT NULL,
        family TEXT NOT NULL,
        method TEXT NOT NULL,
        options TEXT NOT NULL,
        solver TEXT NOT NULL,
        seed INTEGER NOT NULL,
        time_limit_s REAL,
        gap_limit REAL NOT NULL,
        threads INTEGER NOT NULL,
        memory_limit_bytes INTEGER,
        status TEXT NOT NULL,
        objective REAL,
        bound REAL,
        gap REAL,
        checked INTEGER NOT NULL,
        scope TEXT,
        scope_bound REAL,
        runtime_s REAL NOT NULL,
        wall_s REAL NOT NULL,
        peak_memory_bytes INTEGER,
        message TEXT NOT NULL,
        host TEXT NOT NULL,
        finished TEXT NOT NULL,
        versions TEXT NOT NULL,
        details TEXT NOT NULL,
        trace TEXT NOT NULL,
        solution BLOB
    );
    CREATE INDEX runs_by_instance ON runs (family, instance, method);
    """,
    """
    ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE runs ADD COLUMN revision TEXT;
    """,
    """
    ALTER TABLE runs ADD COLUMN answer_s REAL;
    """,
    """
    ALTER TABLE runs ADD COLUMN compile_s REAL NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN evidence TEXT;
    """,
    """
    ALTER TABLE runs ADD COLUMN found_by TEXT;
    ALTER TABLE runs ADD COLUMN proved_by TEXT;
    """,
)
"""What brings a store from version k to version k + 1; never changed, only added to."""

_DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite has to say of a damaged file; its message may be no text itself."""

NESTED = ("options", "versions", "machine", "details", "trace")
"""Columns of ``runs`` that are JSON."""

STATUSES = (*(str(status) for status in Status), "crashed", "out_of_memory", "killed")
"""Those of results, and those of solves whose process gave none."""


class Store:
    """Results of sweeps.

    Every row of ``runs`` is one solve, its ``key`` a digest of all that decides its outcome; times are in seconds,
    memory in bytes, ``trace`` a list of [seconds, incumbent, bound], ``solution`` the solution's JSON, compressed by
    zlib. ``instances`` has what the runs refer to.

    Parameters
    ----------
    path : str or Path
        Made if there is no such file.
    write : bool
        Lock the store against other sweeps. Where it is only read, one of an older version is brought up to date in
        memory and stays as it is in the file, and rows that cannot be what a solve came to are left out; ``skipped``
        says which, and why.

    Raises
    ------
    StoreError
        If the file is no store, or one of a newer version, or damaged, or another sweep has it; from any method, if
        what it reads turns out to be damaged, or the disk is full.
    """

    def __init__(self, path: str | Path, write: bool = True) -> None:
        self.path = Path(path)
        self.skipped: dict[str, str] = {}
        self._left_out: tuple[int, ...] | None = () if write else None
        if not write and not self.path.is_file():
            raise StoreError(f"{self.path}: there is no such store")
        self._lock = FileLock(f"{writable(self.path)}.lock") if write else None
        if self._lock is not None:
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise StoreError(
                    f"{self.path} is in use by another sweep; wait for it, or give another store"
                ) from None
            except OSError as problem:
                raise StoreError(f"{self.path} cannot be locked: {problem.strerror or problem}") from None
        new = not self.path.exists()
        try:
            self._connection = self._opened(write)
        except (sqlite3.Error, UnicodeDecodeError, OSError) as problem:
            if new:
                for ending in ("", "-wal", "-shm", "-journal"):
                    Path(f"{self.path}{ending}").unlink(missing_ok=True)
            self._release()
            if isinstance(problem, StoreError):
                raise
            if isinstance(problem, sqlite3.OperationalError | OSError):
                raise StoreError(f"{self.path} cannot be used: {problem}") from None
            raise StoreError(f"{self.path} is not a store of results, or is damaged: {problem}") from None

    def _opened(self, write: bool) -> sqlite3.Connection:
        connection = self._connected("rwc" if write else "ro")
        try:
            try:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
            except sqlite3.OperationalError:
                log = Path(f"{self.path}-wal")
                if write or (log.exists() and log.stat().st_size):
                    raise
                # Readers share a small file, which a full or read-only disk has no room for.
                connection.close()
                connection = self._connected("ro&immutable=1")
                version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            ours = connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION
            if tables and not ours:
                raise StoreError(f"{self.path} is a database of something else")
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"{self.path} was written by a newer ddlopt: it is a store of version {version}, and this one "
                    f"knows {len(MIGRATIONS)}; upgrade ddlopt"
                )
            if write:
                _require_sound(connection, self.path)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA wal_autocheckpoint = 1")  # a full disk leaves little in the log
            elif version < len(MIGRATIONS):
                connection = _copied(connection)
            for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
                # One transaction with the version, so that a store is never between two of them.
                connection.executescript(
                    f"BEGIN; {script} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {number}; COMMIT;"
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        return connection

    def close(self) -> None:
        """Close the file and let others write to it."""
        self._connection.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            Path(self._lock.lock_file).unlink(missing_ok=True)  # while it is still ours
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _access(self) -> Iterator[None]:
        """Say in one line what SQLite has to say."""
        try:
            yield
        except sqlite3.OperationalError as problem:
            raise StoreError(f"{self.path} cannot be used: {problem}") from None
        except _DAMAGED as problem:
            raise StoreError(f"{self.path} is damaged: {problem}") from None

    def keys(self) -> set[str]:
        """Keys of the runs that are finished."""
        with self._access():
            return {row["key"] for row in self._connection.execute("SELECT key FROM runs")}

    def add(self, run: Mapping[str, Any], instance: Mapping[str, Any]) -> None:
        """Add one finished run; it is on the disk when this returns. One that is there already stays as it is.

        Raises
        ------
        StoreError
            If it cannot be written; the store then stays as it was.
        """
        self._insert("instances", dict(instance) | {"sizes": json.dumps(instance["sizes"])})
        row = dict(run) | {name: json.dumps(run[name]) for name in NESTED}
        if run["solution"] is not None:
            row["solution"] = zlib.compress(json.dumps(run["solution"], separators=(",", ":")).encode())
        self._insert("runs", row)

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        with self._access():
            self._connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", row)

    def runs(self, solutions: bool = False) -> Iterator[dict[str, Any]]:
        """All runs in the order of their keys' insertion, with lists and mappings as such."""
        for row in self.rows(["rowid", "*"]):
            run = dict(row)
            number = run.pop("rowid")
            del run["solution"]
            for name in NESTED:
                run[name] = json.loads(run[name])
            if solutions:
                text = self.solution(number)
                run["solution"] = None if text is None else parsed(text)
            yield run

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the store as it is now, whatever a sweep adds meanwhile."""
        self._connection.execute("BEGIN")
        try:
            with self._access():
                # The first reading fixes what is seen.
                self._connection.execute("SELECT count(*) FROM instances").fetchone()
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def rows(self, columns: Iterable[str], **equal: Any) -> Iterator[sqlite3.Row]:
        """Columns of the runs, as they are stored; of those alone whose other columns equal the values given."""
        left_out = self._screened()
        wanted = " AND ".join(f"{name} = :{name}" for name in equal) or "1"
        names = ", ".join(columns)
        but = f"AND rowid NOT IN ({', '.join(map(str, left_out))})" if left_out else ""
        with self._access():
            yield from self._connection.execute(f"SELECT {names} FROM runs WHERE {wanted} {but} ORDER BY rowid", equal)

    def solution(self, rowid: int) -> str | None:
        """The JSON text of the solution of a run; None where there is none.

        Raises
        ------
        StoreError
            If it is damaged.
        """
        (row,) = self.rows(["solution"], rowid=rowid)
        if row["solution"] is None:
            return None
        try:
            return unpacked(row["solution"]).decode("utf-8")
        except (TypeError, UnicodeDecodeError, UnreadableError) as problem:
            raise StoreError(f"{self.path}: the solution of row {rowid} is damaged: {problem}") from None

    def instances(self) -> dict[str, dict[str, Any]]:
        """Instances by digest."""
        self._screened()
        with self._access():
            rows = [dict(row) for row in self._connection.execute("SELECT * FROM instances")]
        return {row["digest"]: row | {"sizes": json.loads(row["sizes"])} for row in rows if not fault_of_instance(row)}

    def _screened(self) -> tuple[int, ...]:
        """Rows of ``runs`` that are left out; found at the first reading."""
        if self._left_out is None:
            left_out: list[int] = []
            with self._access():
                _require_sound(self._connection, self.path)
                senses = {}
                for row in self._connection.execute("SELECT * FROM instances"):
                    fault = fault_of_instance(dict(row))
                    if fault is None:
                        senses[row["digest"]] = row["sense"]
                    else:
                        self.skipped[f"instance {plain(str(row['name']))}"] = fault
                for row in self._connection.execute("SELECT rowid AS rowid, * FROM runs ORDER BY rowid"):
                    fault = fault_of_run(dict(row), STATUSES, senses)
                    if fault is not None:
                        left_out.append(row["rowid"])
                        self.skipped[f"row {row['rowid']}"] = fault
            self._left_out = tuple(left_out)
        return self._left_out

    def forget(self, statuses: Iterable[str]) -> int:
        """Delete the runs that ended so, to have them done again; how many there were.

        Raises
        ------
        OptionError
            If runs do not end so.
        """
        wanted = tuple(statuses)
        unknown = sorted(set(wanted) - set(STATUSES))
        if unknown:
            raise OptionError(f"no run ends as '{unknown[0]}'; runs end as: {', '.join(STATUSES)}")
        marks = ", ".join("?" * len(wanted))
        with self._access():
            return self._connection.execute(f"DELETE FROM runs WHERE status IN ({marks})", wanted).rowcount


def _require_sound(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError if the file is damaged, before anything is asked of it or added to it.

    An index that says something else than its table would give other rows to another question.
    """
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise StoreError(f"{path} is damaged: {plain(said)}")


def _text(data: bytes) -> str:
    """Text of the store; what is none is told apart later, row by row."""
    return data.decode("utf-8", "surrogateescape")


def _copied(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A copy in memory, which may be brought up to date where the file is only read."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    copy.row_factory = sqlite3.Row
    connection.backup(copy)
    connection.close()
    return copy
