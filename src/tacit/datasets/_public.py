"""Ranges and categories of the real data sets, fixed in the code.

Category lists are documented by the donors. Numeric ranges follow from how a column
was collected where that is documented, and are round figures elsewhere. None is the
extreme of a file unless the extract was cut there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
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
        # rounding may end a unit in the last place above 1
        scaled: NDArray[np.float64] = np.minimum((v - low) / (high - low), 1.0)
        return scaled


# Census Income: the extract keeps ages above 16 and hours above 0, and the survey codes
# ages above 90, hours above 99 and gains above 99,999 as these. The sampling weight is
# left out: it describes the survey, not the person.
ADULT_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "age": Range(17, 90),
        "education_num": Range(1, 16),
        "capital_gain": Range(0, 99_999),
        "capital_loss": Range(0, 5_000),
        "hours_per_week": Range(1, 99),
    }
)

ADULT_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "workclass": (
            "Private",
            "Self-emp-not-inc",
            "Self-emp-inc",
            "Federal-gov",
            "Local-gov",
            "State-gov",
            "Without-pay",
            "Never-worked",
        ),
        "education": _words(
            "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th "
            "7th-8th 12th Masters 1st-4th 10th Doctorate 5th-6th Preschool"
        ),
        "marital_status": (
            "Married-civ-spouse",
            "Divorced",
            "Never-married",
            "Separated",
            "Widowed",
            "Married-spouse-absent",
            "Married-AF-spouse",
        ),
        "occupation": _words(
            "Tech-support Craft-repair Other-service Sales Exec-managerial "
            "Prof-specialty Handlers-cleaners Machine-op-inspct Adm-clerical "
            "Farming-fishing Transport-moving Priv-house-serv Protective-serv "
            "Armed-Forces"
        ),
        "relationship": (
            "Wife",
            "Own-child",
            "Husband",
            "Not-in-family",
            "Other-relative",
            "Unmarried",
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
)

_HILLSHADE: Final = Range(0, 255)
_INDICATOR: Final = Range(0, 1)

# Forest cover: round figures for the ten measurements (meters, degrees, 8-bit shades),
# then indicators that are 0 or 1 already.
COVERTYPE_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "Elevation": Range(1_500, 4_000),
        "Aspect": Range(0, 360),
        "Slope": Range(0, 90),
        "Horizontal_Distance_To_Hydrology": Range(0, 1_500),
        "Vertical_Distance_To_Hydrology": Range(-200, 700),
        "Horizontal_Distance_To_Roadways": Range(0, 7_500),
        "Hillshade_9am": _HILLSHADE,
        "Hillshade_Noon": _HILLSHADE,
        "Hillshade_3pm": _HILLSHADE,
        "Horizontal_Distance_To_Fire_Points": Range(0, 7_500),
        **{f"Wilderness_Area{i}": _INDICATOR for i in range(1, 5)},
        **{f"Soil_Type{i}": _INDICATOR for i in range(1, 41)},
    }
)

# Blocks of the 1990 census: ages and incomes (10,000 dollars) are coded no higher, the
# state lies within these degrees, and the means over households are round figures, as
# blocks with few households and many guests have large ones.
CALIFORNIA_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "MedInc": Range(0, 15.0001),
        "HouseAge": Range(0, 52),
        "AveRooms": Range(0, 200),
        "AveBedrms": Range(0, 50),
        "Population": Range(0, 50_000),
        "AveOccup": Range(0, 2_000),
        "Latitude": Range(32, 42),
        "Longitude": Range(-125, -114),
    }
)

# Half hours of a market, scaled by the publisher but for the day of the week.
ELECTRICITY_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "date": Range(0, 1),
        "day": Range(1, 7),
        "period": Range(0, 1),
        "nswprice": Range(0, 1),
        "nswdemand": Range(0, 1),
        "vicprice": Range(0, 1),
        "vicdemand": Range(0, 1),
        "transfer": Range(0, 1),
    }
)

# The documentation of the network set gives types and no ranges. Chosen here, wider
# than the published file: a day of seconds, 31 bits of bytes, 16 and 8 bits of events.
# The window counts are over at most 511 and 255 connections.
_BYTES: Final = Range(0, 2**31 - 1, log=True)
_MANY: Final = Range(0, 2**16 - 1, log=True)
_FEW: Final = Range(0, 2**8 - 1, log=True)
_SHARE: Final = Range(0, 1)

KDDCUP99_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "duration": Range(0, 86_400, log=True),
        "src_bytes": _BYTES,
        "dst_bytes": _BYTES,
        "land": _INDICATOR,
        "wrong_fragment": _FEW,
        "urgent": _FEW,
        "hot": _FEW,
        "num_failed_logins": _FEW,
        "logged_in": _INDICATOR,
        "num_compromised": _MANY,
        "root_shell": _INDICATOR,
        "su_attempted": _FEW,
        "num_root": _MANY,
        "num_file_creations": _FEW,
        "num_shells": _FEW,
        "num_access_files": _FEW,
        "num_outbound_cmds": _FEW,
        "is_host_login": _INDICATOR,
        "is_guest_login": _INDICATOR,
        "count": Range(0, 511),
        "srv_count": Range(0, 511),
        "serror_rate": _SHARE,
        "srv_serror_rate": _SHARE,
        "rerror_rate": _SHARE,
        "srv_rerror_rate": _SHARE,
        "same_srv_rate": _SHARE,
        "diff_srv_rate": _SHARE,
        "srv_diff_host_rate": _SHARE,
        "dst_host_count": Range(0, 255),
        "dst_host_srv_count": Range(0, 255),
        "dst_host_same_srv_rate": _SHARE,
        "dst_host_diff_srv_rate": _SHARE,
        "dst_host_same_src_port_rate": _SHARE,
        "dst_host_srv_diff_host_rate": _SHARE,
        "dst_host_serror_rate": _SHARE,
        "dst_host_srv_serror_rate": _SHARE,
        "dst_host_rerror_rate": _SHARE,
        "dst_host_srv_rerror_rate": _SHARE,
    }
)

# All services of the full competition file, of which the tenth holds most.
KDDCUP99_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
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
)
