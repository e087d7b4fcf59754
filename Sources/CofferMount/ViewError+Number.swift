internal import CofferContainer
internal import Glibc

extension ViewError {
  /// Its number, as the manual pages name it.
  var number: CInt {
    switch self {
    case .ended, .locked: EACCES
    case .readOnly: EROFS
    case .notFound: ENOENT
    case .exists: EEXIST
    case .notADirectory: ENOTDIR
    case .isADirectory: EISDIR
    case .directoryNotEmpty: ENOTEMPTY
    case .invalid: EINVAL
    case .nameTooLong: ENAMETOOLONG
    case .tooLarge: EFBIG
    case .tooManyLinks: EMLINK
    case .folderLink, .notPermitted: EPERM
    case .linkLoop: ELOOP
    case .noSuchAttribute: ENODATA
    case .invalidAttributeName: ERANGE
    case .attributeTooLarge: E2BIG
    case .full: ENOSPC
    case .badHandle: EBADF
    case .busy: EBUSY
    case .noSuchPlace: ENXIO
    case .unsupported: EOPNOTSUPP
    case .system(let number): number
    case .failed: EIO
    }
  }
}
