/// Operations, rows and bytes that gather before a commit is made in any case: bounds memory, and what a crash undoes.
struct GatheringLimits {
  var operations = 4096
  var rows = 8192
  var bytes = 1 << 20

  init() {}

  /// At most so many operations, with what such operations have.
  init(operations limit: Int) {
    operations = min(operations, limit)
    rows = min(rows, max(256, 2 * operations))
    bytes = min(bytes, max(256 << 10, operations << 8))
  }

  /// Where the disk has no room for a commit: what is removed may yet make some.
  static let ofFullDisk: GatheringLimits = {
    var limits = GatheringLimits()
    (limits.operations, limits.rows, limits.bytes) = (16_384, 32_768, 4 << 20)
    return limits
  }()
}
