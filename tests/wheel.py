"""The wheel as a user installs it: built from this checkout, installed in a fresh environment, run from any folder."""

import importlib.util
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class InstalledWheel:
    """A fresh environment with the wheel in it."""

    wheel: Path
    environment: Path

    def run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run `gbfl …` or `python …` of this environment in a folder. The checkout is not on its path."""
        program, *arguments = command
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "GBFL"))}
        return subprocess.run(
            [self.environment / "bin" / program, *arguments],
            cwd=folder,
            env=inherited,
            capture_output=True,
            text=True,
        )


def install_wheel(folder: Path) -> InstalledWheel:
    """Build the wheel and install it. Libraries come from this environment (a path file), the package from the wheel."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "dist", ROOT]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next((folder / "dist").glob("*.whl"))
    environment = folder / "venv"
    venv.create(environment, with_pip=True)
    install = [environment / "bin/python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    libraries = folder / "libraries"
    libraries.mkdir()
    site = Path(importlib.util.find_spec("numpy").origin).parent.parent
    for entry in site.iterdir():
        if "gbfl" not in entry.name and entry.suffix != ".pth":
            (libraries / entry.name).symlink_to(entry)
    packages = next((environment / "lib").glob("python*/site-packages"))
    (packages / "libraries.pth").write_text(f"{libraries}\n")
    return InstalledWheel(wheel, environment)
