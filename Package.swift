// swift-tools-version: 6.3
import PackageDescription

// The table of rooms and arrows is in ARCHITECTURE.md; Scripts/check-imports holds every import against it.

// Tests go through the rooms many thousand times: Scripts/test and Scripts/sanitize have them optimised, as they ship.
// Nobody who depends on the package sets this, so that its products stay free of flags of their own.
let isOptimized = Context.environment["COFFER_OPTIMIZED"] != nil

let settings: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let roomSettings = settings + (isOptimized ? [.unsafeFlags(["-O"])] : [])

func room(_ name: String, _ dependencies: [Target.Dependency] = [], _ resources: [Resource]? = nil) -> Target {
  .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: roomSettings)
}

func command(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, swiftSettings: roomSettings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies + ["CofferTestSupport"], swiftSettings: settings)
}

let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdTLS: Target.Dependency = .product(name: "HummingbirdTLS", package: "hummingbird")
let asyncHTTPClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let hummingbirdTesting: Target.Dependency = .product(name: "HummingbirdTesting", package: "hummingbird")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")

// The vault and what it stands on, with its tests.
let engine: [Target] = [
  .target(name: "CCoffer"),
  room("CofferSystem", ["CCoffer", logging]),
  room("CofferCrypto", ["CofferSystem", crypto, cryptoExtras]),
  room("CofferKeys", ["CofferCrypto", "CofferSystem"]),
  room("CofferFiles", ["CofferSystem"]),
  room("CofferVault", ["CofferFiles", "CofferCrypto", "CofferSystem", "CofferKeys", "CSQLiteAccess", grdb]),
  .target(
    name: "CSQLiteAccess", linkerSettings: [.linkedLibrary("sqlite3")]),
  room("CofferTestSupport", ["CofferSystem"]),
  room(
    "CofferVaultTestSupport",
    ["CofferVault", "CofferFiles", "CofferKeys", "CofferCrypto", "CofferSystem", "CofferTestSupport"]),
  command("coffer-crash-child", ["CofferVaultTestSupport", "CofferSystem"]),
  .target(name: "CSQLiteRecorder", linkerSettings: [.linkedLibrary("sqlite3")]),
  command(
    "coffer-bench",
    ["CofferVault", "CofferFiles", "CofferKeys", "CofferCrypto", "CofferSystem", crypto, cryptoExtras]),
  tests("CofferSystemTests", ["CofferSystem", "coffer-crash-child"]),
  tests("CofferCryptoTests", ["CofferCrypto", "CofferSystem"]),
  tests("CofferKeysTests", ["CofferKeys", "CofferCrypto", "CofferSystem"]),
  tests(
    "CofferVaultTests",
    [
      "CofferVault", "CofferVaultTestSupport", "CofferFiles", "CofferKeys", "CofferCrypto", "CofferSystem",
      "CSQLiteRecorder", "coffer-crash-child", grdb,
    ]),
]

// Policy, the gate, the network and the programs, with their tests.
let product: [Target] = [
  room("CofferPolicy", ["CofferCrypto"]),
  room(
    "CofferContainer", ["CofferFiles", "CofferVault", "CofferKeys", "CofferPolicy", "CofferCrypto", "CofferSystem"]),

  // The network.
  room("CofferAPI", ["CofferPolicy", "CofferCrypto"]),
  room(
    "CofferClient",
    [
      "CofferAPI", "CofferPolicy", "CofferCrypto", "CofferSystem", asyncHTTPClient, nioSSL, nioCore, nioHTTP1,
      nioPosix,
    ]),
  room(
    "CofferServer",
    [
      "CofferAPI", "CofferPolicy", "CofferCrypto", "CofferSystem", "CQREncode", hummingbird, hummingbirdCore,
      hummingbirdTLS, httpTypes, lifecycle, signals, logging, nioSSL, nioCore, nioPosix, nioHTTPTypes,
    ], [.embedInCode("Console/Assets/console.css"), .embedInCode("Console/Assets/console.js")]),
  .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
  room("CofferServerSQLite", ["CofferServer", "CofferAPI", "CofferPolicy", "CofferCrypto", "CofferSystem", grdb]),

  // The edges.
  command(
    "coffer",
    [
      "CofferContainer", "CofferFiles", "CofferClient", "CofferPolicy", "CofferCrypto", "CofferSystem", "CofferKeys",
      .target(name: "CofferMount", condition: .when(platforms: [.linux])), arguments,
    ]),
  command(
    "coffer-server",
    ["CofferServer", "CofferServerSQLite", "CofferAPI", "CofferCrypto", "CofferSystem", arguments, logging]),
  .systemLibrary(name: "CMagic", pkgConfig: "libmagic", providers: [.apt(["libmagic-dev"])]),
  .systemLibrary(name: "CFuse3", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
  room("CofferMount", ["CofferContainer", "CofferFiles", "CofferSystem", "CFuse3"]),
  .systemLibrary(name: "CSeccomp", pkgConfig: "libseccomp", providers: [.apt(["libseccomp-dev"])]),
  command("coffer-content-type", ["CMagic", "CSeccomp", "CofferSystem"]),

  // The proof.
  tests("CofferPolicyTests", ["CofferPolicy", "CofferAPI", "CofferCrypto", "CofferSystem"]),
  tests(
    "CofferContainerTests",
    [
      "CofferContainer", "CofferPolicy", "CofferCrypto", "CofferKeys", "CofferSystem", "coffer-content-type",
    ]),
  tests(
    "CofferClientTests",
    [
      "CofferClient", "CofferAPI", "CofferPolicy", "CofferCrypto", "CofferSystem", nioSSL, nioCore, nioPosix,
      hummingbird, hummingbirdTLS, lifecycle, logging,
    ]),
  tests(
    "CofferServerTests",
    [
      "CofferServer", "CofferServerSQLite", "coffer-server", "CofferAPI", "CofferPolicy", "CofferCrypto",
      "CofferSystem", hummingbird, hummingbirdCore, hummingbirdTesting, httpTypes, nioCore, nioEmbedded, nioHTTPTypes,
      nioSSL, grdb, logging,
    ]),
  tests("CofferMountTests", [.target(name: "CofferMount", condition: .when(platforms: [.linux])), "CofferFiles"]),
  tests(
    "CommandTests",
    [
      "coffer", "coffer-server", "coffer-content-type", "CofferContainer", "CofferVault", "CofferFiles", "CofferKeys",
      "CofferCrypto", "CofferSystem", grdb,
    ]),
]

let products: [Product] = [
  Product.`library`(
    name: "CofferContainer",
    targets: ["CofferContainer", "CofferFiles", "CofferPolicy", "CofferKeys", "CofferCrypto", "CofferSystem"]),
  Product.`library`(name: "CofferClient", targets: ["CofferClient"]),
  .executable(name: "coffer", targets: ["coffer"]),
  .executable(name: "coffer-content-type", targets: ["coffer-content-type"]),
  .executable(name: "coffer-server", targets: ["coffer-server"]),
]

// The engine alone, for work on the vault and for builds with sanitizers: COFFER_ENGINE_ONLY=1 swift build --build-tests
let isEngineOnly = Context.environment["COFFER_ENGINE_ONLY"] != nil

let package = Package(
  name: "coffer",
  platforms: [.iOS(.v18), .macOS(.v15)],
  products: isEngineOnly ? [] : products,
  dependencies: [
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.34.1"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.5.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: isEngineOnly ? engine : engine + product,
  swiftLanguageModes: [.v6]
)
