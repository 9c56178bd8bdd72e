/// Names that an attacker could give a node to harm a user who exports it.
enum HostileNames {
  static let all: [String] =
    traversal + separators + controls + devices + windows + bidi + lengths + collisions + options + encodings

  static let traversal = [
    "", ".", "..", "...", "....", "../", "..\\", "../..", "../../etc/passwd", "../../.ssh/authorized_keys", "/../x",
    "./../x", "..;/x",
    "%2e%2e%2f", "..%2f", "%2e%2e/", "..%c0%af", "..%252f", ". .", ".. ", " ..", "..\u{0}", "..\u{0}/x", "\u{0}..",
    ".\u{0}.",
    "\u{2024}\u{2024}/x", "\u{FF0E}\u{FF0E}\u{FF0F}x", "..\u{2215}x", "..\u{2044}x", "..\u{29F8}x", "....//",
    "....\\\\", "..../", "~", "~/x",
    "~root", "$HOME", "%USERPROFILE%", "\\\\?\\C:\\x", "\\\\server\\share", "//server/share", "file:///etc/passwd",
    "C:", "C:\\x", "C:/x", "c:x",
  ]

  static let separators = [
    "/", "//", "a/b", "/a", "a/", "/etc/passwd", "a/../../b", "\\", "a\\b", "\\a", "a\\", "a/b\\c", ":", "a:b", ":a",
    "a:", "a::$DATA", "a:b:c",
    "a\u{0}/b", "\u{2F}\u{338}", "a\u{2F}", "\u{338}/", "/\u{301}", "\u{0}", "a\u{0}b", "a\u{0}", "\u{0}a",
    "a.txt\u{0}.exe",
  ]

  static let controls =
    (1..<32).map { "a\(Character(Unicode.Scalar(UInt8($0))))b" } + [
      "\u{7F}", "a\u{80}b", "a\u{85}b", "a\u{9B}31mb", "\u{1B}[2J", "\u{1B}]0;title\u{7}", "a\nb", "a\r\nb", "\r\n",
      "line\u{2028}two", "line\u{2029}two",
      "a\u{FEFF}b", "\u{200B}", "a\u{200B}b", "a\u{2060}b", "\u{FFFE}x", "x\u{FFFF}",
    ]

  static let devices =
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"].flatMap {
      [$0, $0.lowercased(), "\($0).txt", "\($0).tar.gz", "\($0) ", "\($0)."]
    }
    + (0...9).flatMap { ["COM\($0)", "lpt\($0).log"] } + [
      "COM¹", "COM²", "LPT³", "con .txt", "Con.Con", "nul:", "aux/x",
    ]

  static let windows = [
    "a.", "a..", "a ", "a  ", "a. ", "a .", " a", "  ", " ", ". ", "a<b", "a>b", "a\"b", "a|b", "a?b", "a*b", "*", "?",
    "<>:\"|?*", "desktop.ini",
    "Thumbs.db", "a.lnk", "GIT~1", "PROGRA~1", "$MFT", "$RECYCLE.BIN", "a.{21EC2020-3AEA-1069-A2DD-08002B30309D}",
  ]

  static let bidi = [
    "\u{202E}cod.exe", "invoice\u{202E}fdp.exe", "a\u{202A}b", "a\u{202B}b", "a\u{202C}b", "a\u{202D}b", "a\u{2066}b",
    "a\u{2067}b", "a\u{2068}b",
    "a\u{2069}b", "\u{202E}", "\u{2066}\u{202E}\u{2069}",
  ]

  static let lengths = [
    String(repeating: "a", count: 255), String(repeating: "a", count: 256), String(repeating: "a", count: 1_024),
    String(repeating: "é", count: 127), String(repeating: "é", count: 128), String(repeating: "é", count: 512),
    String(repeating: "😀", count: 64), String(repeating: "😀", count: 256), String(repeating: "a", count: 300) + ".txt",
    String(repeating: "a", count: 250) + ".verylongextension", "a" + String(repeating: "\u{301}", count: 500),
    String(repeating: "/", count: 1_024), String(repeating: ".", count: 1_024), String(repeating: " ", count: 1_024),
    String(repeating: "\u{202E}", count: 341), String(repeating: "../", count: 341),
    "." + String(repeating: "a", count: 400),
  ]

  /// Next to each other in one folder.
  static let collisions = [
    "README", "readme", "ReadMe", "README.", "a_b", "a?b", "é", "e\u{301}", "É", "E\u{301}", "ß", "SS", "ss", "ſ", "s",
    "K", "\u{212A}", "k", "ﬁ", "fi",
    "Å", "\u{212B}", "A\u{30A}", "İ", "i\u{307}", "_", "__", "___", "x~2", "x", "X", "x ", "x.",
  ]

  static let options = [
    "-", "--", "-rf", "--help", "-rf *", "`id`", "$(id)", "a;id", "a&id", "a|id", "'", "\"", "#", "!", "a'b", "a\tb",
    ".git", ".GIT", ".bashrc",
  ]

  static let encodings = [
    "\u{FFFD}", "\u{10FFFF}", "\u{1F468}\u{200D}\u{1F469}", "\u{E000}", "\u{1F1E6}", "\u{0301}", "\u{200D}", "\u{FE0F}",
    "\u{3000}", "\u{A0}", "\u{180E}",
    "_content", ".zdc-get-x", ".zdc-case-x",
  ]
}
