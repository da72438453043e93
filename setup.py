"""What TOML cannot say of the packaging: four rooms are installed inside ddlopt, with whatever packages they have."""

from setuptools import find_packages, setup

ROOMS = ("models", "solvers", "instances", "analysis")

setup(
    packages=[
        *find_packages(include=["ddlopt", "ddlopt.*"]),
        *(
            f"ddlopt.{package}"
            for package in find_packages(include=[each for room in ROOMS for each in (room, f"{room}.*")])
        ),
    ]
)
