//! Why passes did what they did: words that stand in attributes, and sentences for reports and listings. Both
//! are made of the same data, so what the text of a kernel says is what is said of its machine code.

/// Defines reasons: each has its word in the text and its sentence.
macro_rules! reasons {
    ($(#[$about:meta])* $vis:vis $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal $sentence:literal;)* }) => {
        $(#[$about])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        $vis enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them with their words.
            pub(crate) const WORDS: &[($name, &str)] = &[$(($name::$variant, $word)),*];

            /// The word in the text of a kernel.
            pub(crate) const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The reason in words.
            pub(crate) const fn text(self) -> &'static str {
                match self {
                    $($name::$variant => $sentence,)*
                }
            }
        }
    };
}

reasons! {
    /// Why an instruction of an access moves no more elements.
    pub Narrowness {
        /// Each element has a coordinate that is a value of its own.
        OwnCoordinates "coordinates" "each has a coordinate that is a value of its own";
        /// They are no neighbours in memory.
        Apart "apart" "more are not certainly neighbours in memory";
        /// They do not certainly start at a whole dword.
        Unaligned "unaligned" "more do not certainly start at a whole dword";
        /// Some may be outside of the memory while others are inside.
        Edges "edges" "of more some may be outside of the memory while others are inside";
        /// The strides or the sizes of the memory are not certainly multiples of more.
        Strides "strides" "strides and sizes are not certainly multiples of more";
    }
}

reasons! {
    /// Why an access leaves out the elements outside of the memory. Any other read may bring what it likes
    /// for them: it only reaches results that are outside as well, and those are never stored.
    pub MaskReason {
        /// It writes: nothing is stored there.
        Stored "stored" "nothing may be stored outside";
        /// A product sums over the dimension, or a loop walks along it.
        Summed "summed" "a sum takes zeros from outside";
        /// The kernel writes the memory that it reads: past the end of a row lies the next one, which other
        /// workgroups may be writing.
        Rewritten "rewritten" "other workgroups may be writing what is outside";
        /// It is made at coordinates, and those of elements that do not exist lead anywhere.
        Mapped "mapped" "coordinates of what does not exist lead anywhere";
    }
}

reasons! {
    /// Why a read of a shared memory does not go through LDS.
    pub(crate) UnsharedReason {
        /// It is volatile.
        Volatile "volatile" "a volatile read brings what is there when it is made";
        /// Values say where, and are not those of whole rows, or cannot be made again for a load of the tile.
        Values "values" "its coordinates are made of values, which each lane has for its own elements";
    }
}
