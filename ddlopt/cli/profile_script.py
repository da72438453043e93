"""The command ``profile-script``."""


def profile_script() -> None:
    """Print a script that measures a training job in PyTorch; it needs nothing of ddlopt."""
    from importlib.resources import files

    print(files("ddlopt.instances.scripts").joinpath("profile_job.py").read_text(encoding="utf-8"), end="")
