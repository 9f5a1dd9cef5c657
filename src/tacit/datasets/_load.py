"""Public data sets by name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Final

from tacit.datasets import _people, _ratings, _real, _tables
from tacit.datasets._ratings import RatingData
from tacit.datasets._real import Dataset

LOADERS: Final[Mapping[str, Callable[..., Dataset | RatingData]]] = {
    name.removeprefix("load_"): loader
    for module in (_people, _ratings, _real, _tables)
    for name, loader in vars(module).items()
    if name.startswith("load_")
}


def load(
    name: str,
    *,
    scaled: bool | None = None,
    binary: bool | None = None,
    label: str | None = None,
    n_rows: int | None = None,
    download: bool | None = None,
) -> Dataset | RatingData:
    """Load a public data set by its name.

    Parameters
    ----------
    name
        One of the names listed below.
    scaled
        Whether columns are moved to [0, 1], which is the default, or only clipped to
        their public ranges. For abalone, california_housing, diabetes, electricity,
        jester, madelon, melting_point and wine_quality.
    binary
        Whether covertype and newsgroups20 have two classes, the largest and the rest,
        instead of all.
    label
        Which of the 40 published attributes of celeba_attributes is the label; the
        default is "Smiling".
    n_rows
        How many of the 70,000 images of mnist to keep, in the published order; the
        default is 65,000.
    download
        Whether to fetch the set when it is not in the data folder. For abalone,
        acs_income, adult, california_housing, covertype, electricity, kddcup99,
        madelon and mnist.

    Returns
    -------
    Dataset or RatingData
        Rows ``X``, targets ``y``, ``feature_names``, the public ranges
        ``feature_bounds`` and ``y_range``, and ``x_norm``, a public bound on the norm
        of a row; its method ``without(column)`` sets a sensitive column apart. For
        ratings: ``users``, ``items``, ``ratings``, ``n_items`` and ``rating_range``.

    Notes
    -----
    Sets are read from the folder named by the environment variable ``TACIT_DATA``,
    else from ``shared/data`` beside the checkout. Ranges follow from how a column was
    collected where that is documented, and are round figures elsewhere. The rows are
    public: reading them costs no privacy.

    Classes, in dense rows unless noted:

    * a9a: Census Income as 123 indicators, 48,842 people.
    * acs_income: income above 50,000 dollars; 42,091 people who work, of Colorado and
      Nebraska in 2018 [1]_. Occupations are in 25 major groups or none, birthplaces
      by part of the world.
    * adult: Census Income, income above 50,000 dollars; the 45,222 people with no
      unknown answer, without the sampling weight [2]_.
    * celeba_attributes: does a person smile, from 39 other attributes of 202,599 faces
      [3]_. The publishers allow non-commercial research only.
    * compas: is a person charged again within two years; the 6,172 people of the
      published analysis [4]_, without the scores. Arrests stand in for crimes here, so
      the label itself is in dispute.
    * covertype: which of 7 trees covers a plot of land; 581,012 plots [5]_.
    * dorothea: does a compound bind to thrombin; 350 compounds as CSR rows over
      100,000 structures, half of which carry no information [6]_.
    * electricity: does the price in New South Wales rise above that of the last day;
      45,312 half hours in order.
    * kddcup99: is a connection an attack; 494,021 connections, byte and event counts
      on a logarithmic scale.
    * madelon: 2,600 corners of a cube, hidden among 500 columns [6]_.
    * mnist: handwritten digits, 784 pixels each.
    * newsgroups20: to which of 20 groups a post was sent; 18,846 posts as CSR rows of
      word counts over their norm.
    * reuters_moneyfx: is a dispatch about foreign exchange; 11,069 dispatches as CSR
      rows of norm 1. Terms are weighted by their rarity in the whole collection, so
      the weights must be public.

    Regression:

    * abalone: rings of 4,177 shells, from their size and weight [7]_.
    * california_housing: median value of houses in 20,640 blocks of the census, in
      100,000 dollars [8]_.
    * diabetes: progress of the disease in a year, 442 patients [9]_.
    * jester: mean rating of the other jokes, from the ratings of ten that everyone
      was shown; 24,983 people [10]_. A joke that was not rated counts as rated 0.
    * melting_point: degrees Celsius at which 4,401 compounds melt, from 202
      descriptors of the molecule [11]_.
    * wine_quality: grades of 6,497 wines from laboratory measurements [12]_.

    Ratings:

    * jester_ratings: 1,810,455 ratings of 100 jokes by 24,983 people [10]_.
    * movielens_100k, movielens_1m: stars given to 1,682 movies by 943 people, and to
      3,706 movies by 6,040 people [13]_.
    * netflix_sample: 94,931 stars given to 1,336 movies by 800 people [14]_.

    References
    ----------
    .. [1] F. Ding, M. Hardt, J. Miller and L. Schmidt, "Retiring Adult: new datasets
       for fair machine learning", NeurIPS 2021.
    .. [2] B. Becker and R. Kohavi. Adult. UCI Machine Learning Repository, 1996.
    .. [3] Z. Liu, P. Luo, X. Wang and X. Tang, "Deep learning face attributes in the
       wild", ICCV 2015.
    .. [4] J. Larson, S. Mattu, L. Kirchner and J. Angwin, "How we analyzed the COMPAS
       recidivism algorithm", ProPublica, 2016.
    .. [5] J. Blackard. Covertype. UCI Machine Learning Repository, 1998.
    .. [6] I. Guyon, S. Gunn, A. Ben-Hur and G. Dror, "Result analysis of the NIPS 2003
       feature selection challenge", NeurIPS 2004.
    .. [7] W. Nash, T. Sellers, S. Talbot, A. Cawthorn and W. Ford. Abalone. UCI
       Machine Learning Repository, 1995.
    .. [8] R. Pace and R. Barry, "Sparse spatial autoregressions", Statistics and
       Probability Letters 33, 1997.
    .. [9] B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, "Least angle
       regression", Annals of Statistics 32, 2004.
    .. [10] K. Goldberg, T. Roeder, D. Gupta and C. Perkins, "Eigentaste: a constant
       time collaborative filtering algorithm", Information Retrieval 4, 2001.
    .. [11] M. Karthikeyan, R. Glen and A. Bender, "General melting point prediction
       based on a diverse compound data set and artificial neural networks", Journal
       of Chemical Information and Modeling 45, 2005.
    .. [12] P. Cortez, A. Cerdeira, F. Almeida, T. Matos and J. Reis, "Modeling wine
       preferences by data mining from physicochemical properties", Decision Support
       Systems 47, 2009.
    .. [13] F. M. Harper and J. A. Konstan, "The MovieLens datasets: history and
       context", ACM Transactions on Interactive Intelligent Systems 5, 2015.
    .. [14] J. Bennett and S. Lanning, "The Netflix Prize", KDD Cup and Workshop, 2007.

    Examples
    --------
    >>> from tacit.datasets import load
    >>> len(load("diabetes").y)
    442
    """
    if name not in LOADERS:
        raise ValueError(
            f"name must be one of {', '.join(sorted(LOADERS))}, got {name!r}."
        )
    options = {
        "scaled": scaled,
        "binary": binary,
        "label": label,
        "n_rows": n_rows,
        "download": download,
    }
    given = {option: value for option, value in options.items() if value is not None}
    allowed = inspect.signature(LOADERS[name]).parameters
    for option in given:
        if option not in allowed:
            has = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise TypeError(f"{name} has no option {option}; {has}.")
    return LOADERS[name](**given)
