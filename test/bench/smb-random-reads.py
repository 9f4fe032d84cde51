"""Random reads over SMB by libsmbclient: smbclient itself cannot read from the middle of a file.

Arguments: smb://host/share/file, port, user, bytes per read. Standard input: the password, then one offset per line.
Prints the milliseconds that the reads took, without logging in and opening.
"""
import ctypes
import sys
import time

url, port, user, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
password, *offsets = sys.stdin.read().split('\n')
library = ctypes.CDLL('libsmbclient.so.0', use_errno=True)

GET_AUTH = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


@GET_AUTH
def get_auth(_server, _share, group, _group_size, name, _name_size, secret, _secret_size):
    for place, text in ((group, 'WORKGROUP'), (name, user), (secret, password)):
        ctypes.memmove(place, text.encode() + b'\0', len(text.encode()) + 1)


def pointer(name, *arguments):
    function = getattr(library, name)
    function.restype = ctypes.c_void_p
    return function(*arguments)


context = ctypes.c_void_p(pointer('smbc_new_context'))
library.smbc_setFunctionAuthData(context, get_auth)
library.smbc_setPort(context, ctypes.c_uint16(port))
if not pointer('smbc_init_context', context):
    sys.exit('libsmbclient does not start')
pointer('smbc_set_context', context)
library.smbc_lseek.restype = ctypes.c_long
library.smbc_lseek.argtypes = (ctypes.c_int, ctypes.c_long, ctypes.c_int)
library.smbc_read.restype = ctypes.c_ssize_t
library.smbc_read.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)

file = library.smbc_open(url.encode(), 0, 0)
if file < 0:
    sys.exit(f'{url} cannot be opened: error {ctypes.get_errno()}')
buffer = ctypes.create_string_buffer(size)
places = [int(offset) for offset in offsets if offset]
start = time.monotonic()
for place in places:
    if library.smbc_lseek(file, place, 0) != place or library.smbc_read(file, buffer, size) != size:
        sys.exit(f'no {size} bytes at {place}')
print((time.monotonic() - start) * 1000)
