"""What an experiment refuses of its previews, in a configuration and when it is made."""

import pytest

from components.interfaces import UserError
from pipeline import configs


def previews(value: str, *more: str) -> list[str]:
    return [f"experiment.Experiment.previews = {value}", *more]


def test_previews_are_a_mapping_of_parts_each_in_a_scope_of_its_own_if_need_be() -> None:
    both = "{'samples': @class_montage.class_montage, 'small': @small/class_montage.class_montage}"
    config = configs.parse(["quickstart"], previews(both, "small/class_montage.class_montage.rows = 3"))
    assert list(config.experiment().previews) == ["samples", "small"]
    assert configs.parse(["quickstart"], previews("{}")).experiment().previews == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{'samples': 3}", "Received 3"),
        ("{'samples': @dcgan.generator}", "takes 1 argument"),
        ("{3: @class_montage.class_montage}", "takes str"),
        ("[@class_montage.class_montage]", "Write a dict"),
        ("{'samples': @class_montage.class_montage()}", "Leave off the parentheses"),
    ],
)
def test_previews_of_another_kind_are_refused_before_anything_is_built(value, words) -> None:
    with pytest.raises(UserError, match=words):
        configs.parse(["quickstart"], previews(value))


@pytest.mark.parametrize("name", ["a/b", "..", "", "checkpoints", "history"])
def test_preview_whose_name_is_no_folder_of_its_own_is_refused(name) -> None:
    config = configs.parse(["quickstart"], previews(f"{{{name!r}: @class_montage.class_montage}}"))
    with pytest.raises(UserError, match="a folder of its name.*Use letters"):
        config.experiment()
