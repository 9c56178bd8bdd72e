import Foundation

/// Line drawings of 20 × 20 pixels, and the logo.
enum Icon {
  static let plus: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M10 4v12M4 10h12"/></svg>
    """
  static let clock: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><circle cx="10" cy="10" r="7"/><path d="M10 6v4l2.5 2"/></svg>
    """
  static let person: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><circle cx="10" cy="7" r="3"/>\
    <path d="M4 17c.5-3.5 3-5 6-5s5.500 1.500 6 5"/></svg>
    """
  static let logo: HTML = """
    <svg viewBox="0 0 24 24" class="logo" aria-hidden="true"><rect x="2" y="2" width="20" height="20" rx="6"/>\
    <path d="M7 12.5l3.4 3.4L17.5 8.5"/></svg>
    """
  static let chevron: HTML = """
    <svg viewBox="0 0 20 20" class="icon chevron" aria-hidden="true"><path d="M8 4l6 6-6 6"/></svg>
    """
  static let check: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M4 10.500l4 4 8-9"/></svg>
    """
  static let people: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><circle cx="8" cy="7" r="3"/>\
    <path d="M2.500 16.500c.5-3.500 2.500-4.500 5.500-4.500s5 1 5.500 4.500M13 4.300a3 3 0 0 1 0 5.400M15 12.300c1.500.7 2.300 2 2.500 4.200"/></svg>
    """
  static let envelope: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><rect x="2.500" y="4.500" width="15" height="11" rx="2"/>\
    <path d="M3 6l7 5 7-5"/></svg>
    """
  static let lock: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><rect x="4" y="9" width="12" height="8" rx="2"/>\
    <path d="M7 9V6a3 3 0 0 1 6 0v3"/></svg>
    """
  static let trash: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M3.500 5.500h13M8 5.500V3.500h4v2M5 5.500l.8 11h8.400l.8-11"/></svg>
    """
  static let leave: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M9 3.500H4.500v13H9M8.500 10h8M13.500 7l3 3-3 3"/></svg>
    """
  static let pencil: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M4 16l.7-3L13 4.700l2.300 2.300L7 15.300z"/></svg>
    """
  static let merge: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M5 3.500v3c0 4 5 3 5 7v3M15 3.500v3c0 4-5 3-5 7"/></svg>
    """
  /// The icon of the browser's tab, a file.
  static let tab = """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect x="2" y="2" width="20" height="20" rx="6" fill="#3b5bdb"/>\
    <path d="M7 12.5l3.4 3.4L17.5 8.5" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round" \
    stroke-linejoin="round"/></svg>
    """
}
