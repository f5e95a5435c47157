"""The charts of the HTML report: drawn here as SVG, so that they need no library, network or script.

One file each. A chart that needs the width of a page is drawn twice, for wide and for narrow screens; the
page's style shows the one that fits. Colours come from the page's style, so dark and print cost nothing.
"""
