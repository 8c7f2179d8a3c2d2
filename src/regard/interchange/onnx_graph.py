"""Pieces of an ONNX graph: what a Transformer is made of, in the operators of the standard.

Values are called by their names; a function adds the nodes that compute one and returns its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

OPSET, IR = 17, 8  # LayerNormalization came with the first; both are old enough for every runtime


class Graph:
    """Nodes and constants in the order in which they came, which is one they can be run in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(
        self, op: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None
    ) -> str:
        """The result of an operator that has one."""
        return self.add_all(op, inputs, 1, attributes)[0]

    def add_all(
        self, op: str, inputs: Sequence[str], n: int, attributes: Mapping[str, Any] | None = None
    ) -> list[str]:
        """The n results of an operator."""
        from onnx import helper

        outputs = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **(attributes or {})))
        return outputs

    def constant(self, value: NDArray[Any] | Sequence[int] | float, name: str = "") -> str:
        """A value that never changes; by the same name it is stored once."""
        from onnx import numpy_helper

        name = name or f"constant_{len(self.constants)}"
        if name not in self.constants:
            dtype = np.float32 if isinstance(value, float) else None
            array = np.ascontiguousarray(np.asarray(value, dtype))
            self.constants[name] = numpy_helper.from_array(array.reshape(np.shape(value)), name)
        return name

    def takes(self, name: str, dtype: type[Any], *shape: str | int) -> str:
        """An input; an axis that may have any length is called by a name."""
        self.inputs.append(_value(name, dtype, shape))
        return name

    def gives(self, name: str, value: str, *shape: str | int) -> None:
        """An output, of floats."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(_value(name, np.float32, shape))

    def model(self, maker: str) -> Any:
        """The graph as a model, found right by ONNX's own checker."""
        from onnx import checker, helper

        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, list(self.constants.values())
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR,
            producer_name=maker,
        )
        checker.check_model(model)
        return model

    # --- what layers are made of

    def linear(self, x: str, weight: NDArray[Any], bias: NDArray[Any], name: str) -> str:
        """x W^T + b."""
        product = self.add("MatMul", [x, self.constant(weight.T, f"{name}.weight")])
        return self.add("Add", [product, self.constant(bias, f"{name}.bias")])

    def norm(self, x: str, weight: NDArray[Any], bias: NDArray[Any], name: str) -> str:
        """Layer norm over the last axis."""
        constants = [self.constant(weight, f"{name}.weight"), self.constant(bias, f"{name}.bias")]
        return self.add("LayerNormalization", [x, *constants], {"axis": -1, "epsilon": 1e-5})

    def activated(self, x: str, name: str) -> str:
        """ReLU, or swish: x times its sigmoid."""
        if name == "relu":
            return self.add("Relu", [x])
        return self.add("Mul", [x, self.add("Sigmoid", [x])])

    def split_heads(self, x: str, n_heads: int) -> str:
        """(batch, time, width) to (batch, heads, time, width of a head)."""
        shape = self.constant(np.array([0, 0, n_heads, -1]), f"heads_{n_heads}")
        return self.add("Transpose", [self.add("Reshape", [x, shape])], {"perm": [0, 2, 1, 3]})

    def joined_heads(self, x: str) -> str:
        """The inverse of `split_heads`."""
        shape = self.constant(np.array([0, 0, -1]), "joined")
        return self.add("Reshape", [self.add("Transpose", [x], {"perm": [0, 2, 1, 3]}), shape])

    def attended(self, query: str, key: str, value: str, scale: float, bias: str | None) -> str:
        """softmax(q k^T · scale + bias) v, where the bias of what is no word is very small."""
        keys = self.add("Transpose", [key], {"perm": [0, 1, 3, 2]})
        scores = self.add("MatMul", [query, keys])
        scores = self.add("Mul", [scores, self.constant(scale)])
        if bias is not None:
            scores = self.add("Add", [scores, bias])
        return self.add("MatMul", [self.add("Softmax", [scores], {"axis": -1}), value])

    def turned(self, x: str, cos: str, sin: str) -> str:
        """Rotary positions: each pair of x turned by the angle of its place."""
        even, odd = (self._every_second(x, first) for first in (0, 1))
        pairs = [
            self.add("Sub", [self.add("Mul", [even, cos]), self.add("Mul", [odd, sin])]),
            self.add("Add", [self.add("Mul", [even, sin]), self.add("Mul", [odd, cos])]),
        ]
        last = self.constant(np.array([-1]), "last")
        stacked = self.add(
            "Concat", [self.add("Unsqueeze", [side, last]) for side in pairs], {"axis": -1}
        )
        return self.add("Reshape", [stacked, self.constant(np.array([0, 0, 0, -1]), "paired")])

    def _every_second(self, x: str, first: int) -> str:
        starts, ends, axes, steps = (
            self.constant(np.array([number]), f"slice_{number}")
            for number in (first, np.iinfo(np.int64).max, -1, 2)
        )
        return self.add("Slice", [x, starts, ends, axes, steps])


def _value(name: str, dtype: type[Any], shape: Sequence[str | int]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape)
    )
