"""Functions that threads call side by side: each race, and its repair.

Written from `docs/check.md` alone, as users write them.
"""

import tensorflow as tf

NUMBER = [tf.TensorSpec([], tf.float32)]
PAIR = [tf.TensorSpec([2], tf.float32)]


def variables(*names, shape=()):
    return [tf.Variable(tf.ones(shape), name=name) for name in names]


# --- two training steps at once

(weight,) = variables("weight")
training = tf.CriticalSection(name="training")


@tf.function(input_signature=NUMBER)
def step_racy(x):
    gradient = 2.0 * (weight * x - 1.0) * x
    weight.assign_sub(0.1 * gradient)


@tf.function(input_signature=NUMBER)
def step_repaired(x):
    def step():
        gradient = 2.0 * (weight * x - 1.0) * x
        return weight.assign_sub(0.1 * gradient)

    training.execute(step)


# --- a counter that two threads count up

(counter,) = variables("counter")


@tf.function
def count_racy():
    counter.assign(counter + 1.0)


@tf.function
def count_repaired():
    counter.assign_add(1.0)


# --- a metric that is read beside its update

total, seen = variables("total", "seen")
metric = tf.CriticalSection(name="metric")


@tf.function(input_signature=NUMBER)
def record_racy(loss):
    total.assign_add(loss)
    seen.assign_add(1.0)


@tf.function
def mean_racy():
    return total / seen


@tf.function(input_signature=NUMBER)
def record_repaired(loss):
    metric.execute(lambda: (total.assign_add(loss), seen.assign_add(1.0)))


@tf.function
def mean_repaired():
    return metric.execute(lambda: total.read_value() / seen.read_value())


nameless = tf.CriticalSection(name="nameless")
named = tf.CriticalSection(shared_name="named")


@tf.function
def mean_in_nameless_section():
    return nameless.execute(lambda: total.read_value() / seen.read_value())


@tf.function
def mean_in_named_section():
    return named.execute(lambda: total.read_value() / seen.read_value())


# --- ... and reset beside its update


@tf.function
def reset_racy():
    total.assign(0.0)
    seen.assign(0.0)


@tf.function
def reset_repaired():
    metric.execute(lambda: (total.assign(0.0), seen.assign(0.0)))


# --- a moving average that follows a weight

online, average = variables("online", "average")


@tf.function(input_signature=NUMBER)
def descend_racy(gradient):
    online.assign_sub(gradient)


@tf.function
def follow_racy():
    average.assign(0.9 * average + 0.1 * online)


@tf.function(input_signature=NUMBER)
def descend_repaired(gradient):
    online.assign_sub(gradient)
    average.assign(0.9 * average + 0.1 * online)


# --- evaluation beside training

kernel, bias = variables("kernel", "bias")
model = tf.CriticalSection(name="model")


@tf.function(input_signature=NUMBER)
def fit_racy(x):
    with tf.GradientTape() as tape:
        loss = tf.square(kernel * x + bias)
    gradients = tape.gradient(loss, [kernel, bias])
    kernel.assign_sub(0.1 * gradients[0])
    bias.assign_sub(0.1 * gradients[1])


@tf.function(input_signature=NUMBER)
def predict_racy(x):
    return kernel * x + bias


@tf.function(input_signature=NUMBER)
def fit_repaired(x):
    def fit():
        with tf.GradientTape() as tape:
            loss = tf.square(kernel * x + bias)
        gradients = tape.gradient(loss, [kernel, bias])
        return kernel.assign_sub(0.1 * gradients[0]), bias.assign_sub(0.1 * gradients[1])

    model.execute(fit)


@tf.function(input_signature=NUMBER)
def predict_repaired(x):
    return model.execute(lambda: kernel * x + bias)


# --- only one of the two takes the section


@tf.function(input_signature=NUMBER)
def predict_without_section(x):
    return kernel * x + bias


# --- a section for each read, and not one for both


@tf.function(input_signature=NUMBER)
def predict_in_two_sections(x):
    return model.execute(lambda: kernel * x) + model.execute(lambda: bias + 0.0)


# --- gradients that one run adds up, and another one applies

gradients, applied = variables("gradients", "applied")
accumulation = tf.CriticalSection(name="accumulation")


@tf.function(input_signature=NUMBER)
def accumulate_racy(gradient):
    gradients.assign_add(gradient)


@tf.function
def apply_racy():
    applied.assign_sub(gradients)
    gradients.assign(0.0)


@tf.function(input_signature=NUMBER)
def accumulate_repaired(gradient):
    accumulation.execute(lambda: gradients.assign_add(gradient))


@tf.function
def apply_repaired():
    def apply():
        changed = applied.assign_sub(gradients)
        return changed, gradients.assign(0.0)

    accumulation.execute(apply)


# --- a learning rate that a second thread lowers

rate, tuned = variables("rate", "tuned")


@tf.function(input_signature=NUMBER)
def tune_racy(gradient):
    tuned.assign_sub(rate * gradient)


@tf.function
def lower_racy():
    rate.assign(0.5 * rate)


@tf.function(input_signature=[NUMBER[0], NUMBER[0]])
def tune_repaired(gradient, given_rate):
    tuned.assign_sub(given_rate * gradient)


# --- the best result so far

(best,) = variables("best")
results = tf.CriticalSection(name="results")


@tf.function(input_signature=NUMBER)
def best_racy(result):
    best.assign(tf.maximum(best, result))


@tf.function(input_signature=NUMBER)
def best_repaired(result):
    results.execute(lambda: best.assign(tf.maximum(best, result)))


# --- a vocabulary that grows beside lookups

words = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="words")
WORDS = [tf.TensorSpec([None], tf.string)]


@tf.function(input_signature=WORDS)
def learn_racy(new):
    words.insert(new, tf.strings.to_hash_bucket_fast(new, 100))


@tf.function(input_signature=WORDS)
def look_up_racy(wanted):
    return words.lookup(wanted)


@tf.function(input_signature=[WORDS[0], WORDS[0]])
def look_up_repaired(new, wanted):
    words.insert(new, tf.strings.to_hash_bucket_fast(new, 100))
    return words.lookup(wanted)


# --- rows of an embedding, updated by two threads

embedding = tf.Variable(tf.ones([4, 2]), name="embedding")
rows = tf.CriticalSection(name="rows")


@tf.function(input_signature=PAIR)
def embed_racy(gradient):
    embedding.scatter_sub(tf.IndexedSlices(gradient[None], tf.constant([1])))


@tf.function(input_signature=PAIR)
def embed_repaired(gradient):
    slices = tf.IndexedSlices(gradient[None], tf.constant([1]))
    rows.execute(lambda: embedding.scatter_sub(slices))


# --- a counter in a function that XLA compiles

(compiled,) = variables("compiled")


@tf.function(jit_compile=True)
def compiled_racy():
    compiled.assign_add(1.0)


@tf.function
def compiled_repaired():
    compiled.assign_add(1.0)


# --- several steps in a loop, beside an evaluation that copies the weights

first, second = variables("first", "second")
copy = tf.CriticalSection(name="copy")


@tf.function(input_signature=NUMBER)
def many_steps_racy(x):
    for _ in tf.range(3):
        first.assign_sub(0.1 * x)
        second.assign_sub(0.2 * x)


@tf.function
def snapshot_racy():
    return tf.stack([first.read_value(), second.read_value()])


@tf.function(input_signature=NUMBER)
def many_steps_repaired(x):
    for _ in tf.range(3):
        copy.execute(lambda: (first.assign_sub(0.1 * x), second.assign_sub(0.2 * x)))


@tf.function
def snapshot_repaired():
    return copy.execute(lambda: tf.stack([first.read_value(), second.read_value()]))


# --- helpers that a step calls, one of them in another thread as well

(shared,) = variables("shared")


@tf.function
def double():
    shared.assign(2.0 * shared)


@tf.function
def nested_racy():
    double()
    double()


@tf.function(input_signature=NUMBER)
def scale_outside(x):
    return x * 2.0


@tf.function(input_signature=NUMBER)
def nested_repaired(x):
    return scale_outside(scale_outside(x))
