"""`python -m tests.corpus` lists what differs from the record; with `--record` it makes the record anew."""

import sys

from tests.corpus import artifacts, read_record, write_record

if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        write_record()
    else:
        record, emitted = read_record(), dict(artifacts())
        changed = sorted(key for key in record | emitted if record.get(key) != emitted.get(key))
        sys.exit("\n".join(changed) or 0)
