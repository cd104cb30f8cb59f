"""The structures of gatefold.h as ctypes, up to the members that the benchmarks set: struct_size says where they end."""
import ctypes


class Desc(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("op", ctypes.c_int), ("dtype", ctypes.c_int),
                ("device", ctypes.c_int), ("layout", ctypes.c_int), ("block", ctypes.c_int64),
                ("activation", ctypes.c_int), ("limit", ctypes.c_float), ("alpha", ctypes.c_float),
                ("beta", ctypes.c_float), ("hidden_size", ctypes.c_int64), ("intermediate_size", ctypes.c_int64),
                ("ld_x", ctypes.c_int64), ("ld_gate", ctypes.c_int64), ("ld_up", ctypes.c_int64),
                ("ld_down", ctypes.c_int64), ("ld_out", ctypes.c_int64), ("implementation", ctypes.c_char_p)]


class Args(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("tokens", ctypes.c_int64), ("x", ctypes.c_void_p),
                ("gate", ctypes.c_void_p), ("up", ctypes.c_void_p), ("down", ctypes.c_void_p),
                ("out", ctypes.c_void_p), ("workspace", ctypes.c_void_p), ("workspace_size", ctypes.c_size_t),
                ("stream", ctypes.c_void_p)]


class Candidate(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("chosen", ctypes.c_int), ("eligible", ctypes.c_int),
                ("reason", ctypes.c_char_p)]
