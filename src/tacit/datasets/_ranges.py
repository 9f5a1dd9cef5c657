"""Ranges and categories of the real data sets, fixed in the code.

Category lists are documented by the donors. Numeric ranges follow from how a column
was collected where that is documented, and are round figures elsewhere. None is the
extreme of a file unless the extract itself ends there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class Range:
    """Public range of a numeric column; what lies outside is clipped to it.

    Parameters
    ----------
    low, high
        Ends of the range.
    log
        Whether the column is scaled as ``log(1 + value)``, for counts that span
        many orders of magnitude.
    """

    low: float
    high: float
    log: bool = False

    def scale(self, values: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the values moved to [0, 1]."""
        v = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        low, high = self.low, self.high
        if self.log:
            v, low, high = np.log1p(v), float(np.log1p(low)), float(np.log1p(high))
        # rounding may end one unit in the last digit above 1
        scaled: NDArray[np.float64] = np.minimum((v - low) / (high - low), 1.0)
        return scaled


def _each(names: str, allowed: Range) -> dict[str, Range]:
    """Return the same range for several columns."""
    return dict.fromkeys(_words(names), allowed)


# Census Income: the extract keeps ages above 16 and hours above 0, and the survey codes
# ages above 90, hours above 99 and gains above 99,999 as these. The sampling weight is
# left out: it describes the survey, not the person.
ADULT_RANGES: Final[Mapping[str, Range]] = {
    "age": Range(17, 90),
    "education_num": Range(1, 16),
    "capital_gain": Range(0, 99_999),
    "capital_loss": Range(0, 5_000),
    "hours_per_week": Range(1, 99),
}

ADULT_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "workclass": _words(
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov "
        "Without-pay Never-worked"
    ),
    "education": _words(
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th "
        "7th-8th 12th Masters 1st-4th 10th Doctorate 5th-6th Preschool"
    ),
    "marital_status": _words(
        "Married-civ-spouse Divorced Never-married Separated Widowed "
        "Married-spouse-absent Married-AF-spouse"
    ),
    "occupation": _words(
        "Tech-support Craft-repair Other-service Sales Exec-managerial "
        "Prof-specialty Handlers-cleaners Machine-op-inspct Adm-clerical "
        "Farming-fishing Transport-moving Priv-house-serv Protective-serv "
        "Armed-Forces"
    ),
    "relationship": _words(
        "Wife Own-child Husband Not-in-family Other-relative Unmarried"
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    # spelled as in the published files
    "native_country": _words(
        "United-States Cambodia England Puerto-Rico Canada Germany "
        "Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran "
        "Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland "
        "France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary "
        "Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
        "Trinadad&Tobago Peru Hong Holand-Netherlands"
    ),
}

# of indicators, and of fractions
_INDICATOR: Final = Range(0, 1)

# Forest cover: round figures for the ten measurements (meters, degrees, 8-bit shades),
# then indicators that are 0 or 1 already.
COVERTYPE_RANGES: Final[Mapping[str, Range]] = {
    "Elevation": Range(1_500, 4_000),
    "Aspect": Range(0, 360),
    "Slope": Range(0, 90),
    "Horizontal_Distance_To_Hydrology": Range(0, 1_500),
    "Vertical_Distance_To_Hydrology": Range(-200, 700),
    "Horizontal_Distance_To_Roadways": Range(0, 7_500),
    **{f"Hillshade_{time}": Range(0, 255) for time in ("9am", "Noon", "3pm")},
    "Horizontal_Distance_To_Fire_Points": Range(0, 7_500),
    **{f"Wilderness_Area{i}": _INDICATOR for i in range(1, 5)},
    **{f"Soil_Type{i}": _INDICATOR for i in range(1, 41)},
}

# Blocks of the 1990 census: ages and incomes (10,000 dollars) are coded no higher, the
# state lies within these degrees, and the means over households are round figures, as
# blocks with few households and many guests have large ones.
CALIFORNIA_RANGES: Final[Mapping[str, Range]] = {
    "MedInc": Range(0, 15.0001),
    "HouseAge": Range(0, 52),
    "AveRooms": Range(0, 200),
    "AveBedrms": Range(0, 50),
    "Population": Range(0, 50_000),
    "AveOccup": Range(0, 2_000),
    "Latitude": Range(32, 42),
    "Longitude": Range(-125, -114),
}

# Half hours of a market, scaled by the publisher but for the day of the week.
ELECTRICITY_RANGES: Final[Mapping[str, Range]] = {
    "date": Range(0, 1),
    "day": Range(1, 7),
    **_each("period nswprice nswdemand vicprice vicdemand transfer", Range(0, 1)),
}

# The documentation of the network set gives types and no ranges. Chosen here, wider
# than the published file: a day of seconds, 31 bits of bytes, 16 and 8 bits of events.
# The window counts are over at most 511 and 255 connections.
_BYTES: Final = Range(0, 2**31 - 1, log=True)
_MANY: Final = Range(0, 2**16 - 1, log=True)
_FEW: Final = Range(0, 2**8 - 1, log=True)

KDDCUP99_RANGES: Final[Mapping[str, Range]] = {
    "duration": Range(0, 86_400, log=True),
    "src_bytes": _BYTES,
    "dst_bytes": _BYTES,
    "land": _INDICATOR,
    **_each("wrong_fragment urgent hot num_failed_logins", _FEW),
    "logged_in": _INDICATOR,
    "num_compromised": _MANY,
    "root_shell": _INDICATOR,
    "su_attempted": _FEW,
    "num_root": _MANY,
    **_each("num_file_creations num_shells num_access_files num_outbound_cmds", _FEW),
    **_each("is_host_login is_guest_login", _INDICATOR),
    **_each("count srv_count", Range(0, 511)),
    **_each(
        "serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate "
        "diff_srv_rate srv_diff_host_rate",
        _INDICATOR,
    ),
    **_each("dst_host_count dst_host_srv_count", Range(0, 255)),
    **_each(
        "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate "
        "dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate "
        "dst_host_rerror_rate dst_host_srv_rerror_rate",
        _INDICATOR,
    ),
}

# All services of the full competition file, of which the tenth holds most.
KDDCUP99_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "protocol_type": ("icmp", "tcp", "udp"),
    "service": _words(
        "IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain "
        "domain_u echo eco_i ecr_i efs exec finger ftp ftp_data gopher harvest "
        "hostnames http http_2784 http_443 http_8001 imap4 iso_tsap klogin kshell "
        "ldap link login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp "
        "nntp ntp_u other pm_dump pop_2 pop_3 printer private red_i remote_job rje "
        "shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time "
        "urh_i urp_i uucp uucp_path vmnet whois"
    ),
    "flag": _words("OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"),
}

# Melting point: the program that computed the descriptors documents what they are and
# no ranges. These are round figures, wider than the published file.
_BY_RANGE: Final = {
    (-10000, 0): "AM1_Eele",
    (-5000, 0): "MNDO_Eele PM3_Eele",
    (-1000, 0): "AM1_E MNDO_E PM3_E",
    (-1000, 500): "PM3_HF",
    (-1000, 1000): "AM1_HF MNDO_HF",
    (-500, 20): "E_sol",
    (-200, 100): "E_ele",
    (-100, 500): "E_nb",
    (-50, 20): "E_stb",
    (-50, 100): "E_tor",
    (-50, 2000): "E",
    (-20, 5): "AM1_HOMO MNDO_HOMO PM3_HOMO",
    (-20, 20): "AM1_LUMO MNDO_LUMO PM3_LUMO",
    (-10, 0): "PEOE_PC..1 PC..1 Q_PC..1",
    (-10, 20): "SlogP",
    (-5, 5): "FCharge",
    (-5, 20): "logP.o.w. AM1_IP MNDO_IP PM3_IP",
    (-1, 10): "balabanJ",
    (-1, 500): "E_strain E_vdw",
    (0, 1): (
        "petitjean b_1rotR b_rotR reactive VAdjEq PEOE_RPC. PEOE_RPC..1 PEOE_VSA_FHYD "
        "PEOE_VSA_FNEG PEOE_VSA_FPNEG PEOE_VSA_FPOL PEOE_VSA_FPOS PEOE_VSA_FPPOS "
        "Q_RPC. Q_RPC..1 Q_VSA_FHYD Q_VSA_FNEG Q_VSA_FPNEG Q_VSA_FPOL Q_VSA_FPOS "
        "Q_VSA_FPPOS RPC. RPC..1 FASA. FASA..1 FASA_H FASA_P glob"
    ),
    (0, 2): "density dens",
    (0, 5): "VDistEq a_ICM b_triple a_nI a_nP FCASA. FCASA..1 std_dim2 std_dim3",
    (0, 10): "a_nBr a_nCl a_nS VAdjMa PEOE_PC. PC. Q_PC. a_acid a_base a_don",
    (0, 20): (
        "petitjeanSC radius VDistMa b_double chi1v_C a_nF a_nN a_nO chi1_C Kier3 "
        "KierA2 KierA3 a_acc SlogP_VSA6"
    ),
    (0, 50): (
        "diameter a_aro b_1rotN b_ar b_rotN chi0v chi0v_C chi1v a_nC chi0 chi0_C chi1 "
        "Kier2 KierA1 KierFlex mr a_hyd SMR E_oop rgyr std_dim1"
    ),
    (0, 100): (
        "a_nH a_heavy b_heavy PEOE_VSA.3 PEOE_VSA.6 Kier1 bpol vsa_base vsa_don dipole"
    ),
    (0, 200): (
        "weinerPol a_count a_IC b_count b_single PEOE_VSA.2 PEOE_VSA.4 PEOE_VSA.5 "
        "PEOE_VSA.2.1 PEOE_VSA.4.1 PEOE_VSA.6.1 PEOE_VSA_PPOS Q_VSA_PPOS apol vsa_acc "
        "vsa_acid vsa_pol SlogP_VSA1 SlogP_VSA4 SMR_VSA3 SMR_VSA4"
    ),
    (0, 500): (
        "zagreb PEOE_VSA.0 PEOE_VSA.1 PEOE_VSA.0.1 PEOE_VSA.1.1 PEOE_VSA.3.1 "
        "PEOE_VSA.5.1 PEOE_VSA_NEG PEOE_VSA_PNEG PEOE_VSA_POL Q_VSA_NEG Q_VSA_PNEG "
        "Q_VSA_POL vsa_other SlogP_VSA0 SlogP_VSA2 SlogP_VSA3 SlogP_VSA5 SlogP_VSA8 "
        "SlogP_VSA9 SMR_VSA0 SMR_VSA1 SMR_VSA2 SMR_VSA6 SMR_VSA7 TPSA AM1_dipole "
        "E_str MNDO_dipole PM3_dipole"
    ),
    (0, 1000): (
        "Weight PEOE_VSA_HYD PEOE_VSA_POS Q_VSA_HYD Q_VSA_POS vsa_hyd SlogP_VSA7 "
        "SMR_VSA5 vdw_area vdw_vol E_ang ASA. ASA..1 ASA_P DASA VSA vol"
    ),
    (0, 2000): "ASA ASA_H",
    (0, 5000): "CASA. CASA..1 DCASA",
    (0, 20000): "weinerPath",
    (0, 500000): "pmi",
}

MELTING_POINT_RANGES: Final[Mapping[str, Range]] = {
    name: Range(low, high)
    for (low, high), names in _BY_RANGE.items()
    for name in names.split()
}
