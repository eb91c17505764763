"""The features of published scores: the Inception network of 2015, from its frozen graph.

Tried on a small graph of the same names only: the file itself was not at hand.
"""

import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import requests
import tensorflow as tf

from components.evaluator import cached_files
from components.evaluator.conversion import Conversion, Resize
from components.evaluator.extractor import FeatureNetwork, Function
from components.evaluator.metric import Need
from components.interfaces import DataSource, UserError

GRAPH = "classify_image_graph_def.pb"
ARCHIVE = "inception-2015-12-05.tgz"
URL = f"http://download.tensorflow.org/models/image/imagenet/{ARCHIVE}"
_IMAGES, _POOL, _MATMUL = "Mul:0", "pool_3", "softmax/logits/MatMul"  # beyond the graph's own resize
_SIZE = (299, 299)
_SECONDS = (10.0, 30.0)  # to connect, and of silence


@dataclass(frozen=True, kw_only=True)
class Inception2015:
    """2,048 features and 1,008 logits, as the Fréchet distance and the Inception score are published in.

    Bytes become (byte - 128) / 128; logits are without the bias of their layer, as in the score's first code (Salimans
    et al., 2016). The resize is ours, antialiased (Parmar et al., 2022, arXiv:2104.11222): the graph's own, which most
    published numbers used, is not.

    Attributes:
      path: classify_image_graph_def.pb, or inception-2015-12-05.tgz, which holds it; None: the latter, in
        $XDG_CACHE_HOME/gantry or ~/.cache/gantry.
      sha256: that the file must have; None: any, and the certificate tells which. A download needs it.
      download: whether to fetch the archive where it is not there.
      resize: the filter.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({"logits"})
    path: str | None = None
    sha256: str | None = None
    download: bool = False
    resize: Resize = "bicubic"

    def load(self, data: DataSource) -> FeatureNetwork:
        """Return it; raises UserError where the file is not there, is another, or holds no such graph."""
        path = Path(self.path) if self.path else cached_files.folder() / ARCHIVE
        if not path.is_file():
            self._fetch(path)
        try:
            checksum = cached_files.sha256(path)
        except OSError as error:
            raise UserError(f"`Inception2015.path` must be readable. Received {path}: {error.strerror}.") from error
        self._require(checksum, path)
        conversion = Conversion(size=_SIZE, channels=3, low=-1.0, high=127 / 128, resize=self.resize)
        certificate = {"extractor": "inception_2015", "extractor_hash": checksum}
        return FeatureNetwork(_function(_graph(path), path), conversion, certificate=certificate, batch_size=50)

    def _require(self, checksum: str, path: Path) -> None:
        if self.sha256 is not None and checksum != self.sha256.lower():
            raise UserError(
                f"`Inception2015.sha256` must be that of the file. Received {self.sha256}; {path} has {checksum}. "
                "Fetch the file anew, or mend the checksum."
            )

    def _fetch(self, path: Path) -> None:
        """Download the archive to `path`."""
        if not self.download or path.name != ARCHIVE:
            raise UserError(
                f"`Inception2015` needs its graph. Received {path}, which is not there. Copy {ARCHIVE}, from {URL}, to "
                "that place; or bind `Inception2015.path`; or, for the archive, `download = True` and `sha256`."
            )
        if self.sha256 is None:
            raise UserError(
                "`Inception2015.download` needs `Inception2015.sha256`: what comes over a network is checked. Received "
                f"none. Bind the SHA-256 of {ARCHIVE} from a source that you trust."
            )

        def save(place: Path) -> None:
            try:
                with requests.get(URL, timeout=_SECONDS, stream=True) as answer, place.open("wb") as file:
                    answer.raise_for_status()
                    for part in answer.iter_content(2**20):
                        file.write(part)
            except requests.RequestException as error:
                raise UserError(
                    f"`Inception2015.download` needs a network. Received {type(error).__name__} from {URL}. Copy the "
                    f"file from elsewhere to {path}, or bind `Inception2015.path`."
                ) from error
            self._require(cached_files.sha256(place), place)

        cached_files.write(path, save)


def _graph(path: Path) -> tf.compat.v1.GraphDef:
    """Return the graph in a file, or in an archive."""
    graph = tf.compat.v1.GraphDef()
    try:
        if path.suffix == ".pb":
            graph.ParseFromString(path.read_bytes())
            return graph
        with tarfile.open(path) as archive:
            member = next(one for one in archive if Path(one.name).name == GRAPH)
            content = archive.extractfile(member)
            graph.ParseFromString(content.read() if content else b"")
            return graph
    except Exception as error:  # protobuf's own error is of no public class
        raise UserError(
            f"`Inception2015.path` must be {GRAPH}, or an archive that holds it. Received {path}: "
            f"{type(error).__name__} {error}. Fetch it anew from {URL}."
        ) from error


def _function(graph: tf.compat.v1.GraphDef, path: Path) -> Function:
    """Return the graph as a function: float32[B, 299, 299, 3] -> features float32[B, 2048], logits float32[B, 1008]."""

    def compute(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pool, kernel = tf.graph_util.import_graph_def(
            part, input_map={_IMAGES: images}, return_elements=[f"{_POOL}:0", f"{weights}:0"], name=""
        )
        features = tf.reshape(pool, [-1, pool.shape[-1]])
        return features, tf.matmul(features, kernel)

    try:
        weights = next(node for node in graph.node if node.name == _MATMUL).input[1].partition(":")[0]
        # Without what follows the pool, which is built for one image at a time.
        part = tf.compat.v1.graph_util.extract_sub_graph(graph, [_POOL, weights])
        return tf.compat.v1.wrap_function(compute, [tf.TensorSpec([None, *_SIZE, 3], tf.float32)])
    except (ValueError, LookupError, StopIteration, AssertionError) as error:
        raise UserError(
            f"`Inception2015.path` must hold the graph of 2015, with {_IMAGES}, {_POOL} and {_MATMUL}. Received "
            f"{path}: {' '.join(str(error).split())[:200] or 'not all of them'}. Fetch it anew from {URL}."
        ) from error
