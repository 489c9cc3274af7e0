"""Reinforcement learning without a loader.

What it does: refuses a script that trains on what it experiences: an environment is reset and stepped, and there is no DataLoader.
Why: there is no data set to divide. How many environments each rank steps, and what becomes of the exploration schedule, is a decision
    about the algorithm.
Safety: needs an environment of Gym, Gymnasium or a kindred library, or a step that gives four values or more, on an object that is reset.
References: https://gymnasium.farama.org/api/env/
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.reach import Reach, Use, reach
from ddpify.rules.refuse.scan import chain_of
from ddpify.rules.refuse.training import trains
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP916"
TITLE = "reinforcement learning without a loader"

EXAMPLES = (
    Example("an environment and a loader", "import gym\nfrom torch.utils.data import DataLoader\nenv = gym.make('Ant')\nenv.reset()\n"
            "a, b, c, d = env.step(1)\nloader = DataLoader(replay)\nloss.backward()\n"),
    Example("a scheduler steps", "import torch\nmeter.reset()\nscheduler.step(loss)\nloss.backward()\n"),
    Example("a name in a string", "import torch\nprint('gym.make')\nloss.backward()\n"),
    Example("refused: an environment is stepped", "import gym\nimport torch\nenv = gym.make('Ant')\nenv.reset()\n"
            "observation, reward, done, info = env.step(1)\nloss.backward()\n"),
)  # fmt: skip

_LIBRARIES = ("gym", "gymnasium", "gym3", "procgen", "envpool", "dm_control", "dm_env", "pettingzoo", "brax", "minigrid", "vizdoom",
              "gym_super_mario_bros", "stable_baselines3", "atari_py", "ale_py", "unityagents", "mlagents_envs", "retro")  # fmt: skip
_MAKERS = ("make", "make_vec", "make_dm", "make_gym", "make_env", "make_atari_env", "make_vec_env", "SyncVectorEnv", "AsyncVectorEnv",
           "SubprocVecEnv", "DummyVecEnv", "load", "ProcgenEnv", "ProcgenGym3Env", "UnityEnvironment", "DoomGame",
           "parallel_env")  # fmt: skip


def check(project: Project) -> Verdict | None:
    """A refusal if an environment is stepped and nothing is loaded."""
    reached = reach(project)
    if trains(reached) is None or loads(reached):
        return None
    creations = next(reached.calls(_LIBRARIES, _MAKERS), None)
    step = next(_steps(reached, bool(creations)), None)
    if step is None:
        return None
    reason = (f"reinforcement learning: the data comes from the environment stepped at {step.place}, and there is no DataLoader to divide; "
              "ddpify divides data sets")  # fmt: skip
    return Verdict("refuse", CODE, reason, step.line, step.file)


def loads(reached: Reach) -> bool:
    """Whether any loader of torch, of a graph library or of torchtext is made."""
    return any(name.endswith(("Loader", "BucketIterator", "BPTTIterator")) for use in reached.uses for name in use.names)


def _steps(reached: Reach, made: bool) -> Iterator[Use]:
    """Steps, with an action, of things that are reset; without a known library those that give four values or more."""
    resets = {_receiver(use) for use in reached.methods("reset")} - {""}
    for use in reached.methods("step"):
        if use.arguments and _receiver(use) in resets and (made or _values(use) >= 4):
            yield use


def _receiver(use: Use) -> str:
    chain = chain_of(use.node.func) if isinstance(use.node, ast.Call) else None
    return chain[-2] if chain and len(chain) > 1 else ""


def _values(use: Use) -> int:
    for node in use.unit.walk():
        if isinstance(node, ast.Assign) and node.value is use.node and isinstance(node.targets[0], ast.Tuple):
            return len(node.targets[0].elts)
    return 0
