"""What TOML cannot say of the packaging: six rooms are installed inside ddlopt, with whatever packages they have."""

from setuptools import find_packages, setup

ROOMS = ("models", "certificates", "solvers", "instances", "analysis", "frontier")

setup(
    packages=[
        *find_packages(include=["ddlopt", "ddlopt.*"]),
        *(
            f"ddlopt.{package}"
            for package in find_packages(include=[each for room in ROOMS for each in (room, f"{room}.*")])
        ),
    ]
)
