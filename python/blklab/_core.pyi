"""The compiled half: job parser, device profiles and simulator (crates/blklab-python)."""

class CoreError(Exception):
    message: str

class JobFileError(CoreError):
    source: str
    line: int | None
    option: str | None

class ProfileError(CoreError):
    source: str
    field: str | None

class SimulationError(CoreError):
    field: str | None
    kind: str

def parse_jobs(text: str, source: str) -> str: ...
def job_options() -> str: ...
def schedulers() -> str: ...
def devices() -> str: ...
def check_device(toml_text: str, source: str) -> str: ...
def simulate(request: str) -> str: ...
def check_request(request: str) -> str: ...
