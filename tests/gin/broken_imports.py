"""Import lines that are missing, wrong or idle.

Each row: name; text that is replaced (empty: the next is added at the end); text that replaces it; part of the line
that the message points at; words that the message holds; number of faults, where it is not one.
"""

BROKEN = [
    (
        "import_missing",
        "import toy_losses\n",
        "",
        "alternating.loss",
        ("nothing imports `toy_losses`", "import toy_losses"),
    ),
    (
        "import_missing_of_ours",
        "from components import interfaces\n",
        "",
        "toy_gan.alternating.generator",
        ("from components import interfaces",),
    ),
    (
        "import_missing_and_name_without_module",
        "experiment.Experiment.data = @toy_data.ToySource()",
        "Experiment.data = @toy_data.ToySource()",
        "Experiment.data",
        ("from pipeline import experiment", "experiment.Experiment.data"),
    ),
    ("import_missing_of_keras", "import keras\n", "", "Player.optimizer = @generator", ("Add the line: import keras",)),
    (
        "import_of_no_module",
        "import toy_run",
        "import toy_run\nimport toy_nothing",
        "toy_nothing",
        ("there is no `toy_nothing`",),
    ),
    (
        "import_misspelt_of_ours",
        "from components import interfaces",
        "from components import interface",
        "import interface",
        ("`components.interfaces`",),
        2,
    ),
    (
        "import_of_a_class",
        "from pipeline import experiment",
        "from pipeline.experiment import Experiment",
        "import Experiment",
        ("there is no `pipeline.experiment.Experiment`",),
        2,
    ),
    ("import_unused", "import toy_run", "import toy_run\nimport json", "import json", ("Every import is used",)),
    ("import_twice", "import toy_run", "import toy_run\nimport toy_run", "import toy_run", ("imported once",)),
    (
        "import_of_two_under_one_name",
        "import toy_run",
        "import toy_run\nimport json as toy_run",
        "json as toy_run",
        ("imported once",),
    ),
    ("import_of_several", "import toy_run", "import toy_run, toy_data", "toy_run, toy_data", ("one module",), 5),
    ("import_of_everything", "import toy_run", "from toy_run import *", "import *", ("one module",), 5),
    ("import_relative", "import toy_run", "from . import toy_run", "from .", ("relative",), 5),
    (
        "registration_missing",
        "from __gin__ import dynamic_registration\n",
        "",
        "import keras",
        ("from __gin__ import dynamic_registration",),
    ),
    (
        "registration_below_an_import",
        "from __gin__ import dynamic_registration\nimport keras",
        "import keras\nfrom __gin__ import dynamic_registration",
        "__gin__",
        ("Move it to the top",),
    ),
    ("registration_misspelt", "dynamic_registration", "dynamic_registraton", "__gin__", ("dynamic_registration",)),
]
