"""Ranges of the molecular descriptors of the melting point set.

The program that computed them documents what they are and no ranges: these are round
figures, wider than the published file.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tacit.datasets._public import Range

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

MELTING_POINT_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        name: Range(low, high)
        for (low, high), names in _BY_RANGE.items()
        for name in names.split()
    }
)
