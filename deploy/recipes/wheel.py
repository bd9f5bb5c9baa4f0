"""Makes a wheel with the program inside: wheel.py FOLDER VERSION TAG HOMEPAGE OUT

FOLDER has the program, LICENSE and THIRD-PARTY.txt. The same program gives the same bytes: entries have one order and one
time.
"""
import base64
import hashlib
import os
import sys
import zipfile

folder, version, tag, homepage, out = sys.argv[1:]
name = f"strew-{version}"
info = f"{name}.dist-info"
program = next(p for p in ("strew", "strew.exe") if os.path.exists(os.path.join(folder, p)))


def of_folder(file):
    with open(os.path.join(folder, file), "rb") as opened:
        return opened.read()


def words(*lines):
    return ("\n".join(lines) + "\n").encode()


entries = [
    (f"{name}.data/scripts/{program}", of_folder(program), 0o755),
    (f"{info}/licenses/LICENSE", of_folder("LICENSE"), 0o644),
    (f"{info}/licenses/THIRD-PARTY.txt", of_folder("THIRD-PARTY.txt"), 0o644),
    (
        f"{info}/METADATA",
        words(
            "Metadata-Version: 2.4",
            "Name: strew",
            f"Version: {version}",
            "Summary: Predicts how Kubernetes spreads pods, and says why",
            "License-Expression: Apache-2.0",
            "License-File: LICENSE",
            "License-File: THIRD-PARTY.txt",
            f"Project-URL: Homepage, {homepage}",
        ),
        0o644,
    ),
    (
        f"{info}/WHEEL",
        words("Wheel-Version: 1.0", "Generator: cargo xtask dist", "Root-Is-Purelib: false")
        + b"".join(words(f"Tag: py3-none-{part}") for part in tag.split(".")),
        0o644,
    ),
]


def recorded(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


record = [recorded(path, content) for path, content, _ in entries] + [f"{info}/RECORD,,"]
entries.append((f"{info}/RECORD", words(*record), 0o644))

file = os.path.join(out, f"{name}-py3-none-{tag}.whl")
with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
    for path, content, mode in entries:
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = (0o100000 | mode) << 16
        wheel.writestr(entry, content)
print(os.path.basename(file))
