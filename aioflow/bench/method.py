"""How everything was measured, in the words that every report shows."""

from __future__ import annotations

METHOD = (
    (
        "Same work, same run.",
        "The variants of an experiment do the same work in the same run, and take turns in every round, so "
        "that what disturbs the machine disturbs all of them. What computes in the harness's own process is "
        "warmed up by a round that is forgotten. What has a process of its own starts anew each time; where "
        "it is timed, a run before the first round has files and sites warm for all. Web sites and other "
        "sources run in processes of their own on the same machine. Each variant's result is checked: a "
        "fast wrong answer fails the experiment.",
    ),
    (
        "Our statistics.",
        "A figure is the median of its rounds with a 95 % bootstrap interval: percentiles of 2,000 "
        "resamples, expanded as Student's distribution demands of so few rounds. Of fewer than five rounds "
        "none is given, for not even their least and most would hold the median so surely. Two variants are "
        "compared by the ratio of each round, whose median and interval are given: what slowed both in one "
        "round cancels out. They differ when the interval leaves out 1.",
    ),
    (
        "The paper's statistics.",
        "Beside them stand those of the paper that the experiments repeat: means, standard deviations, "
        "and an unpaired two-tailed t-test, in Welch's form, which does not take the spreads for equal. "
        "The paper made three rounds; here what repeats it makes more, and each table says how many (n).",
    ),
    (
        "Limits.",
        "A limit is what no program could beat: the latencies that must follow one another, or the "
        "requests that the workers allowed at once need, with nothing else taking any time.",
    ),
    (
        "Goals.",
        "A goal was set before the measurement and is judged by the median. One that is missed stays in the "
        "report.",
    ),
    (
        "Conditions.",
        "Garbage is collected as often as Python does by default, and that is counted, here and in the "
        "processes measured. Only the command aioflow run does it less often of itself, every 10,000 "
        "objects, and so do all programs that are compared with each other, by whatever tool. The load "
        "of the machine before and after each experiment and the share of its processors that other "
        "programs took are written beside it.",
    ),
)

SIMULATED = (
    "These figures were not measured. They come from a virtual clock: the plans really ran, but every "
    "request took a latency drawn from a seeded distribution, and computing took no time at all. They "
    "show what schedules allow, not how fast a machine is, and are never mixed with measurements."
)
QUICK = (
    "This was a quick run: sizes are tiny and rounds are few. It shows that the experiments work; its "
    "figures mean little, and its goals are not judged."
)
