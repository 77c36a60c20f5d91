import subprocess
subprocess.run(["curl", "https://example.com"], capture_output=True).stdout
