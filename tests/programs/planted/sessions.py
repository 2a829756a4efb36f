"""Graphs of TensorFlow 1: each race, and its repair.

Written from `docs/check.md` alone, as users write them.
"""

from contextlib import contextmanager

import tensorflow as tf

tf1 = tf.compat.v1


@contextmanager
def graph(*, functional=False):
    """A new graph, with the loops and conditionals of TensorFlow 1 or 2."""
    new = tf.Graph()
    switched = tf1.control_flow_v2_enabled()
    (tf1.enable_control_flow_v2 if functional else tf1.disable_control_flow_v2)()
    try:
        with new.as_default():
            yield new
    finally:
        (tf1.enable_control_flow_v2 if switched else tf1.disable_control_flow_v2)()


def variable(name, value=1.0, *, resource=True):
    return tf1.get_variable(name, initializer=value, use_resource=resource)


def after(*ops):
    return tf.control_dependencies(ops)


# --- two assigns of one variable

with graph() as two_assigns_racy:
    x = variable("x")
    tf.group(x.assign(2.0, read_value=False), x.assign(3.0, read_value=False), name="step")

with graph() as two_assigns_repaired:
    x = variable("x")
    with after(x.assign(2.0, read_value=False)):
        tf.group(x.assign(3.0, read_value=False), name="step")

# --- the loss is fetched beside the step that lowers it

with graph() as loss_racy:
    weight = variable("weight")
    weight.assign_sub(0.5, read_value=False, name="step")
    tf.identity(weight * 2.0, name="loss")

with graph() as loss_repaired:
    weight = variable("weight")
    loss = tf.identity(weight * 2.0, name="loss")
    with after(loss):
        weight.assign_sub(0.5, read_value=False, name="step")

# --- a moving average beside the step

with graph() as average_racy:
    weight, average = variable("weight"), variable("average")
    step = weight.assign_sub(0.5, read_value=False)
    follow = average.assign(0.9 * average + 0.1 * weight, read_value=False)
    tf.group(step, follow, name="step")

with graph() as average_repaired:
    weight, average = variable("weight"), variable("average")
    with after(weight.assign_sub(0.5, read_value=False)):
        new = 0.9 * average + 0.1 * weight.read_value()
    average.assign(new, read_value=False, name="step")

# --- the edge is there, but the read was made before it

with graph() as early_read_racy:
    weight, average = variable("weight"), variable("average")
    new = 0.9 * average + 0.1 * weight
    with after(weight.assign_sub(0.5, read_value=False)):
        average.assign(new, read_value=False, name="step")

with graph() as early_read_repaired:
    weight, average = variable("weight"), variable("average")
    new = 0.9 * average + 0.1 * weight
    with after(new):
        step = weight.assign_sub(0.5, read_value=False)
    with after(step):
        average.assign(new, read_value=False, name="step")

# --- a metric and its update in one run

with graph() as metric_racy:
    total, count = variable("total"), variable("count")
    tf.group(
        total.assign_add(3.0, read_value=False),
        count.assign_add(1.0, read_value=False),
        name="step",
    )
    tf.identity(total / count, name="mean")

with graph() as metric_repaired:
    total, count = variable("total"), variable("count")
    update = tf.group(
        total.assign_add(3.0, read_value=False),
        count.assign_add(1.0, read_value=False),
        name="step",
    )
    with after(update):
        tf.identity(total.read_value() / count.read_value(), name="mean")

# --- two variables change places

with graph() as swap_racy:
    a, b = variable("a", 1.0), variable("b", 2.0)
    tf.group(a.assign(b, read_value=False), b.assign(a, read_value=False), name="step")

with graph() as swap_repaired:
    a, b = variable("a", 1.0), variable("b", 2.0)
    old_a, old_b = a.read_value(), b.read_value()
    with after(old_a, old_b):
        tf.group(a.assign(old_b, read_value=False), b.assign(old_a, read_value=False), name="step")

# --- the learning rate depends on the step's number

with graph() as schedule_racy:
    number, weight = variable("number"), variable("weight")
    step = weight.assign_sub(1.0 / number, read_value=False)
    tf.group(step, number.assign_add(1.0, read_value=False), name="step")

with graph() as schedule_repaired:
    number, weight = variable("number"), variable("weight")
    with after(weight.assign_sub(1.0 / number, read_value=False)):
        number.assign_add(1.0, read_value=False, name="step")

# --- an optimizer, and a summary of the weights

with graph() as summary_racy:
    weight = variable("weight")
    loss = tf.square(weight - 3.0)
    tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
    tf.identity(tf.abs(weight.read_value()), name="norm")

with graph() as summary_repaired:
    weight = variable("weight")
    loss = tf.square(weight - 3.0)
    with after(tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")):
        tf.identity(tf.abs(weight.read_value()), name="norm")

# --- moving statistics, used and updated in one step

with graph() as statistics_racy:
    mean = variable("mean")
    inputs = tf.constant(4.0)
    tf.identity(inputs - mean, name="normalized")
    mean.assign(0.9 * mean + 0.1 * inputs, read_value=False, name="step")

with graph() as statistics_repaired:
    mean = variable("mean")
    inputs = tf.constant(4.0)
    old = mean.read_value()
    normalized = tf.identity(inputs - old, name="normalized")
    with after(normalized):
        mean.assign(0.9 * old + 0.1 * inputs, read_value=False, name="step")

# --- gradients are applied and set to zero

with graph() as zero_racy:
    gradient, weight = variable("gradient"), variable("weight")
    apply = weight.assign_sub(gradient, read_value=False)
    tf.group(apply, gradient.assign(0.0, read_value=False), name="step")

with graph() as zero_repaired:
    gradient, weight = variable("gradient"), variable("weight")
    with after(weight.assign_sub(gradient, read_value=False)):
        gradient.assign(0.0, read_value=False, name="step")

# --- a target network is copied from the online one

with graph() as target_racy:
    online, target = variable("online"), variable("target")
    learn = online.assign_add(1.0, read_value=False)
    tf.group(learn, target.assign(online, read_value=False), name="step")

with graph() as target_repaired:
    online, target = variable("online"), variable("target")
    with after(online.assign_add(1.0, read_value=False)):
        target.assign(online.read_value(), read_value=False, name="step")

# --- a reference variable, of TensorFlow 1

with graph() as reference_racy:
    weight = variable("weight", resource=False)
    tf.group(weight.assign_add(1.0), name="step")
    tf.multiply(weight, 2.0, name="twice")

with graph() as reference_repaired:
    weight = variable("weight", resource=False)
    twice = tf.multiply(weight, 2.0, name="twice")
    with after(twice):
        tf.group(weight.assign_add(1.0), name="step")

# --- two runs: training, and a copy of both weights

with graph() as two_runs_racy:
    kernel, bias = variable("kernel"), variable("bias")
    tf.group(
        kernel.assign_add(1.0, read_value=False),
        bias.assign_add(1.0, read_value=False),
        name="train",
    )
    tf.stack([kernel.read_value(), bias.read_value()], name="copy")

with graph() as two_runs_repaired:
    kernel, bias = variable("kernel"), variable("bias")
    section = tf.CriticalSection(shared_name="section")
    both = section.execute(lambda: (kernel.assign_add(1.0), bias.assign_add(1.0)))
    tf.group(both, name="train")
    both = section.execute(lambda: tf.stack([kernel.read_value(), bias.read_value()]))
    tf.identity(both, name="copy")

# --- two runs: statistics and then a step, and a prediction from both

with graph() as normalized_racy:
    kernel, mean = variable("kernel"), variable("mean")
    with after(mean.assign_add(1.0, read_value=False)):
        kernel.assign_add(1.0, read_value=False, name="train")
    tf.stack([kernel.read_value(), mean.read_value()], name="copy")

with graph() as normalized_repaired:
    kernel, mean = variable("kernel"), variable("mean")
    section = tf.CriticalSection(shared_name="section")

    def train():
        with after(mean.assign_add(1.0)):
            return kernel.assign_add(1.0)

    tf.group(section.execute(train), name="train")
    both = section.execute(lambda: tf.stack([kernel.read_value(), mean.read_value()]))
    tf.identity(both, name="copy")

# --- a value is doubled after an update, and read before or after it

with graph() as doubled_racy:
    x = variable("x")
    old = x.read_value()
    with after(x.assign_add(1.0, read_value=False)):
        x.assign(2.0 * old, read_value=False, name="step")

with graph() as doubled_repaired:
    x = variable("x")
    with after(x.assign_add(1.0, read_value=False)):
        x.assign(2.0 * x.read_value(), read_value=False, name="step")

# --- each of two reads comes after the write of the other's variable: never are both old

with graph() as crossed_racy:
    a, b = variable("a"), variable("b")
    write_a = a.assign(2.0, read_value=False)
    write_b = b.assign(2.0, read_value=False)
    with after(write_b):
        read_a = a.read_value()
    with after(write_a):
        read_b = b.read_value()
    tf.stack([read_a, read_b], name="both")

with graph() as crossed_repaired:
    a, b = variable("a"), variable("b")
    with after(a.assign(2.0, read_value=False), b.assign(2.0, read_value=False)):
        tf.stack([a.read_value(), b.read_value()], name="both")

# --- a conditional writes what is read beside it

with graph() as branch_racy:
    x, flag = variable("x"), tf1.placeholder(tf.bool, [], "flag")
    written = tf1.cond(flag, lambda: x.assign(5.0), lambda: tf.constant(0.0))
    tf.group(written, name="step")
    tf.identity(x.read_value(), name="seen")

with graph() as branch_repaired:
    x, flag = variable("x"), tf1.placeholder(tf.bool, [], "flag")
    seen = tf.identity(x.read_value(), name="seen")
    with after(seen):
        written = tf1.cond(flag, lambda: x.assign(5.0), lambda: tf.constant(0.0))
    tf.group(written, name="step")

# --- the same with a functional conditional

with graph(functional=True) as functional_branch_racy:
    x, flag = variable("x"), tf1.placeholder(tf.bool, [], "flag")
    written = tf1.cond(flag, lambda: x.assign(5.0), lambda: tf.constant(0.0))
    tf.group(written, name="step")
    tf.identity(x.read_value(), name="seen")

with graph(functional=True) as functional_branch_repaired:
    x, flag = variable("x"), tf1.placeholder(tf.bool, [], "flag")
    written = tf1.cond(flag, lambda: x.assign(5.0), lambda: tf.constant(0.0))
    with after(tf.group(written, name="step")):
        tf.identity(x.read_value(), name="seen")

# --- each branch writes: they never meet

with graph() as both_branches_repaired:
    x, flag = variable("x"), tf1.placeholder(tf.bool, [], "flag")
    written = tf1.cond(flag, lambda: x.assign(5.0), lambda: x.assign(6.0))
    tf.group(written, name="step")

# --- a read was moved out of the loop that counts

with graph() as hoisted_racy:
    x = variable("x")
    outside = x.read_value()

    def add(i):
        with after(i), after(x.assign_add(outside * 0.0 + 1.0, read_value=False)):
            return i + 1

    tf1.while_loop(lambda i: i < 3, add, [0], name="loop")
    end = tf1.while_loop(lambda i: i < 3, add, [0])
    tf.identity(end, name="step")
    tf.identity(x.read_value(), name="seen")

with graph() as hoisted_repaired:
    x = variable("x")

    def add(i):
        with after(i), after(x.assign_add(1.0, read_value=False)):
            return i + 1

    end = tf1.while_loop(lambda i: i < 3, add, [0])
    tf.identity(end, name="step")
    with after(end):
        tf.identity(x.read_value(), name="seen")

# --- iterations overlap

with graph() as iterations_racy:
    x = variable("x")

    def double(i, _):
        with after(i):
            old = x.read_value()
        written = x.assign(old * 2.0)
        return i + 1, written

    tf.identity(tf1.while_loop(lambda i, _: i < 3, double, [0, 0.0])[1], name="step")

with graph() as iterations_repaired:
    x = variable("x")

    def double(i):
        with after(i):
            old = x.read_value()
        with after(x.assign(old * 2.0, read_value=False)):
            return i + 1

    tf.identity(tf1.while_loop(lambda i: i < 3, double, [0]), name="step")

# --- a functional loop beside a read

with graph(functional=True) as functional_loop_racy:
    x = variable("x")

    def halve(i):
        x.assign(x.read_value() / 2.0)
        return i + 1

    tf.identity(tf.while_loop(lambda i: i < 3, halve, [0]), name="step")
    tf.identity(x.read_value(), name="seen")

with graph(functional=True) as functional_loop_repaired:
    x = variable("x")

    def halve(i):
        x.assign(x.read_value() / 2.0)
        return i + 1

    with after(tf.identity(tf.while_loop(lambda i: i < 3, halve, [0]), name="step")):
        tf.identity(x.read_value(), name="seen")

# --- a function is called twice

with graph() as calls_racy:
    x = variable("x")

    @tf.function
    def triple():
        return x.assign(x.read_value() * 3.0)

    tf.group(triple(), triple(), name="step")

with graph() as calls_repaired:
    x = variable("x")

    @tf.function
    def triple():
        return x.assign(x.read_value() * 3.0)

    with after(triple()):
        tf.group(triple(), name="step")

# --- two handles of one variable

with graph() as handles_racy:
    given = {"dtype": tf.float32, "shape": [], "shared_name": "x"}
    one = tf.raw_ops.VarHandleOp(**given, name="one")
    other = tf.raw_ops.VarHandleOp(**given, name="other")
    tf.raw_ops.AssignVariableOp(resource=one, value=2.0, name="step")
    tf.raw_ops.ReadVariableOp(resource=other, dtype=tf.float32, name="seen")

with graph() as handles_repaired:
    given = {"dtype": tf.float32, "shape": [], "shared_name": "x"}
    one = tf.raw_ops.VarHandleOp(**given, name="one")
    other = tf.raw_ops.VarHandleOp(**given, name="other")
    with after(tf.raw_ops.AssignVariableOp(resource=one, value=2.0, name="step")):
        tf.raw_ops.ReadVariableOp(resource=other, dtype=tf.float32, name="seen")

# --- two conditionals; in the repaired graph one's predicate is the other's negation


def reset_and_add(resets, adds):
    total = variable("total", 0.0)
    reset = tf.cond(resets, lambda: total.assign(5.0, read_value=False), tf.no_op)
    add = tf.cond(adds, lambda: total.assign_add(1.0, read_value=False), tf.no_op)
    tf.group(reset, add, name="step")


with graph() as negation_racy:
    report = tf1.placeholder(tf.bool, [])
    reset_and_add(report, tf1.placeholder(tf.bool, []))

with graph() as negation_repaired:
    report = tf1.placeholder(tf.bool, [])
    reset_and_add(report, tf.logical_not(report))

with graph(functional=True) as functional_negation_racy:
    report = tf1.placeholder(tf.bool, [])
    again = tf1.placeholder(tf.bool, [])
    reset_and_add(tf.logical_not(report), tf.logical_not(tf.logical_not(again)))

with graph(functional=True) as functional_negation_repaired:
    report = tf1.placeholder(tf.bool, [])
    reset_and_add(tf.logical_not(report), tf.logical_not(tf.logical_not(report)))
